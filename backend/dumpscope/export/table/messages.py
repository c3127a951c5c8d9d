"""Sentences of verdicts (see `verdict.sentences`) for many item pairs at once: rows with the same words share a template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, Facts, ItemOpinions
from dumpscope.domain.records import STATISTICS, Float64, Int64, State, UInt8
from dumpscope.export.table.cells import object_array
from dumpscope.texts import template as catalogued
from dumpscope.verdict.rules import CODES
from dumpscope.verdict.sentences import how_equal, sentence

_OF_TENSORS: Final = [CODES[rule] for rule in ("T-1", "T-2", "P-1", "P-2", "P-4")]
_OF_STATISTICS: Final = [CODES[rule] for rule in ("M-1", "M-2", "P-3", "D-1")]
_OF_ONE: Final = [CODES[rule] for rule in ("N-1", "I-1", "X-3", "T-1", "T-2", "P-1", "P-2", "M-3")]
"""Rules whose sentence may hold numbers of its pair in another form than in the two above."""
_MEASURES: Final = ("rel_l2", "max_abs", "cosine")
_BY_STATE: Final = np.array([np.nan, 0.0, np.nan, np.inf, -np.inf])


def messages(context: Context, facts: Facts, opinions: ItemOpinions, items: Int64) -> Any:
    """The `sentence` of every pair in `items`, as an array of texts."""
    rules = opinions.rule[items]
    out = np.empty(len(items), object)
    unread = np.isin(items, list(facts.errors))
    measured = np.isin(rules, _OF_TENSORS) & (facts.unequal[items] >= 0) & ~unread
    stored = np.isin(rules, _OF_STATISTICS) & ~unread
    out[measured] = _tensors(facts, opinions, items[measured])
    out[stored] = _statistics(context, facts, opinions, items[stored])
    bits = (rules == CODES["H-2"]) & ~unread
    out[bits] = _statistics(context, facts, opinions, items[bits], "item.bits")
    rest = ~(measured | stored | bits)
    one = rest & (np.isin(rules, _OF_ONE) | unread)
    for place in np.flatnonzero(one).tolist():
        out[place] = sentence(context, facts, opinions, int(items[place]))
    rest &= ~one
    how = np.where(rules == CODES["E-1"], 1 + how_equal(context, facts, items), 0)
    form = how.astype(np.int64) * len(CODES) + rules
    for kind in np.unique(form[rest]).tolist():
        same = rest & (form == kind)
        out[same] = sentence(context, facts, opinions, int(items[np.argmax(same)]))
    return out


def _tensors(facts: Facts, opinions: ItemOpinions, items: Int64) -> Any:
    shown = [np.zeros(len(items), np.int64)]
    words = [[(_template("part.unequal", unequal="%d", elements="%d"), 2)]]
    groups: list[list[Any]] = [[facts.unequal[items], facts.elements[items]]]
    for name in _MEASURES:
        column = TENSOR_METRICS.index(name)
        state = facts.tensor_state[items, column]
        shown.append((state != State.ABSENT).astype(np.int64))
        words.append([("", 0), (_template(f"part.{name}", value="%.6g"), 1)])
        groups.append([_numbers(facts.tensor[items, column], state)])
    return _written(opinions.score[items], shown, words, groups, "")


def _statistics(
    context: Context, facts: Facts, opinions: ItemOpinions, items: Int64, scored: str = "item.scored"
) -> Any:
    shown, words, groups = [], [], []
    for column, word in enumerate(STATISTICS):
        t_state, g_state = context.t_state[items, column], context.g_state[items, column]
        t, g = _numbers(context.t_stats[items, column], t_state), _numbers(context.g_stats[items, column], g_state)
        both = (t_state != State.ABSENT) & (g_state != State.ABSENT)
        same = (t == g) | (np.isnan(t) & np.isnan(g))
        share = facts.rel_state[items, column] == State.FINITE
        relative = 100 * np.where(share, facts.rel[items, column], 0.0)
        shown.append(np.where(both & ~same, 1 + share, 0).astype(np.int64))
        changed = {"name": word, "target": "%.6g", "golden": "%.6g"}
        words.append(
            [
                ("", 0),
                (_template("part.changed", **changed), 2),
                (_template("part.changed_share", **changed, share="%.3g"), 3),
            ]
        )
        groups.append([t, g, relative])
    return _written(opinions.score[items], shown, words, groups, _template("part.agree"), scored)


def _written(
    score: Float64,
    shown: Sequence[Int64],
    words: Sequence[Sequence[tuple[str, int]]],
    groups: Sequence[Sequence[Any]],
    nothing: str,
    scored: str = "item.scored",
) -> Any:
    """Join parts to sentences. shown: per part, which of its `words` (template, number of its values) each row has. scored: the
    sentence around parts with a score"""
    key = np.isfinite(score).astype(np.int64)
    for form in shown:
        key = key * 3 + form
    out = np.empty(len(score), object)
    for one in np.unique(key).tolist():
        (rows,) = np.nonzero(key == one)
        parts, columns = [], []
        for form, choices, group in zip(shown, words, groups, strict=True):
            template, count = choices[form[rows[0]]]
            if template:
                parts.append(template)
            columns += [column[rows].tolist() for column in group[:count]]
        said = ", ".join(parts) or nothing
        if np.isfinite(score[rows[0]]):
            columns.append(score[rows].tolist())
            template = catalogued(scored).format(parts=said, score="%.3g")
        else:
            template = catalogued("item.measured").format(parts=said)
        out[rows] = object_array(map(template.__mod__, zip(*columns, strict=True))) if columns else template
    return out


def _template(id: str, **values: str) -> str:
    """An English sentence part as a %-template."""
    return catalogued(id).replace("%", "%%").format(**values)


def _numbers(values: Float64, states: UInt8) -> Float64:
    return np.where(states == State.FINITE, values, _BY_STATE[states])
