"""One sentence per verdict, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dumpscope.domain.context import Context
from dumpscope.domain.distances import FARTHER, MEASURE_WORDS
from dumpscope.domain.facts import TENSOR_METRICS, Facts, ItemOpinions, Outcome
from dumpscope.domain.records import STATISTICS, Int8, Int64, State
from dumpscope.metrics import derive_metrics
from dumpscope.texts import Phrase, Value, as_value, english, phrase
from dumpscope.verdict.rules import VERDICT_RULES

_FINITE: Final = int(State.FINITE)
_UNUSUAL: Final[dict[int, float | None]] = {
    int(State.ABSENT): None, int(State.NAN): math.nan, int(State.POS_INF): math.inf, int(State.NEG_INF): -math.inf,
}  # fmt: skip

Metrics = dict[str, float | int | str | None]

EQUAL_WORDS: Final = ("equal_value", "equal_empty", "equal_tensor", "equal_hash", "equal_statistics")
"""Sentences that say what was compared where all of it is equal."""
_STATISTIC_NAMES = ("max", "min", "mean", "norm")


def number(value: float, state: int) -> float | None:
    """A stored number as a float (nan and inf stay), None where absent."""
    code = int(state)
    return float(value) if code == _FINITE else _UNUSUAL[code]


def item_metrics(context: Context, facts: Facts, row: int) -> Metrics:
    """All numbers of one item pair by name; absent ones are left out."""
    out: Metrics = {}
    for name in TENSOR_METRICS:
        value = number(facts.metric(name)[row], facts.metric_state(name)[row])
        if value is not None:
            out[name] = value
    out |= {
        name: float(column[row])
        for name, column in derive_metrics(context, facts).items()
        if column[row] == column[row]
    }
    for column, name in enumerate(_STATISTIC_NAMES):
        for prefix, values, states in (("diff", facts.diff, facts.diff_state), ("rel", facts.rel, facts.rel_state)):
            value = number(values[row, column], states[row, column])
            if value is not None:
                out.setdefault(f"{name}_{prefix}", value)  # a tensor's own max_rel says more than that of its maximum
    if facts.unequal[row] >= 0:
        out["unequal"] = int(facts.unequal[row])
        out["elements"] = int(facts.elements[row])
        out["nonfinite_target"] = int(facts.nonfinite_target[row])
        out["nonfinite_golden"] = int(facts.nonfinite_golden[row])
        out["nonfinite_disagree"] = int(facts.nonfinite_disagree[row])
    return out


def sentence(context: Context, facts: Facts, opinions: ItemOpinions, row: int) -> str:
    """Why this item got its verdict, in English."""
    return english(describe_verdict(context, facts, opinions, row))


def describe_verdict(context: Context, facts: Facts, opinions: ItemOpinions, row: int) -> list[Phrase]:
    """Why this item got its verdict."""
    return describe_verdicts(context, facts, opinions, [row])[0]


def describe_verdicts(
    context: Context, facts: Facts, opinions: ItemOpinions, rows: Sequence[int]
) -> list[list[Phrase]]:
    """Why each of these items got its verdict."""
    equal = how_equal(context, facts, np.array(rows, np.int64)).tolist()
    return [
        _describe_row(context, facts, opinions, row, EQUAL_WORDS[how]) for row, how in zip(rows, equal, strict=True)
    ]


def _describe_row(context: Context, facts: Facts, opinions: ItemOpinions, row: int, equal: str) -> list[Phrase]:
    """equal: of EQUAL_WORDS, where it is equal"""
    rule = VERDICT_RULES[opinions.rule[row]]
    score = opinions.score[row]
    if row in facts.errors and rule not in ("X-3", "X-5"):
        rest = [] if rule == "X-4" else _describe(context, facts, opinions, row, rule, score, equal)
        return [*rest, phrase("item.unread_tensor", error=as_value(facts.errors[row]))]
    return _describe(context, facts, opinions, row, rule, score, equal)


def _describe(
    context: Context, facts: Facts, opinions: ItemOpinions, row: int, rule: str, score: float, equal: str
) -> list[Phrase]:
    if rule == "E-1":
        return [phrase(f"item.{equal}")]
    if rule in ("R-1", "R-2"):
        return describe_distances(facts, opinions, row) or [phrase(f"rule.{rule}")]
    measured = facts.unequal[row] >= 0 or facts.metric_state("max_abs")[row] != State.ABSENT
    if rule in ("T-1", "T-2", "P-1", "P-2", "P-4") and measured:
        return [_describe_score(_describe_tensor(facts, row), score)]
    if rule == "M-3":
        return [phrase("item.one_is_none", names=", ".join(_lone_statistics(context, row)))]
    if rule == "H-2":
        return [phrase("item.bits", parts=_describe_statistics(context, facts, row), score=f"{score:.3g}")]
    if rule in ("M-1", "M-2", "P-3", "D-1"):
        return [_describe_score(_describe_statistics(context, facts, row), score)]
    if rule == "N-1":
        if facts.nonfinite_disagree[row] > 0:
            counts = facts.nonfinite_disagree[row], facts.nonfinite_target[row], facts.nonfinite_golden[row]
            disagree, target, golden = map(int, counts)
            word = "nonfinite" if facts.unequal[row] >= 0 else "nonfinite_counted"
            return [phrase(f"item.{word}", disagree=disagree, target=target, golden=golden)]
        return [phrase("item.one_not_finite", parts=_describe_statistics(context, facts, row))]
    if rule == "I-1" and facts.unequal[row] >= 0:
        return [phrase("item.integers", unequal=int(facts.unequal[row]), elements=int(facts.elements[row]))]
    if rule == "X-3" and row in facts.errors:
        stored = facts.outcome[row] == Outcome.COMPARED
        return [
            phrase("item.unreadable_else_equal" if stored else "item.unreadable", error=as_value(facts.errors[row]))
        ]
    return [phrase(f"rule.{rule}")]


def how_equal(context: Context, facts: Facts, rows: Int64) -> Int8:
    """By what items of rule E-1 were found equal, as codes into EQUAL_WORDS; shape of `rows`."""
    stored = (context.t_state[rows] != State.ABSENT) & (context.g_state[rows] != State.ABSENT)
    outcome = facts.outcome[rows]
    choices = [
        outcome == Outcome.SCALAR, outcome == Outcome.EMPTY, facts.unequal[rows] >= 0, context.same_hash[rows],
        stored.any(axis=1),
    ]  # fmt: skip
    return np.select(choices, range(len(choices)), default=EQUAL_WORDS.index("equal_hash")).astype(np.int8)


def describe_distances(facts: Facts, opinions: ItemOpinions, row: int) -> list[Phrase]:
    """Both distances from the reference and which side is how many times as far; nothing where they were not measured."""
    distances, standing = facts.distances, opinions.standing
    if distances is None or standing is None or math.isnan(standing.ratio[row]):
        return []
    measure = int(standing.measure[row])
    both: dict[str, Value] = {
        "target": f"{distances.target[row, measure]:.3g}",
        "golden": f"{distances.golden[row, measure]:.3g}",
        "measure": [phrase(f"distance.{MEASURE_WORDS[measure]}")],
    }
    ratio, inverse = float(standing.ratio[row]), float(standing.inverse[row])
    if ratio > FARTHER:
        return [phrase("item.farther", ratio=f"{ratio:.3g}", **both)]
    if inverse > FARTHER:
        return [phrase("item.golden_farther", ratio=f"{inverse:.3g}", **both)]
    return [phrase("item.no_farther", ratio=f"{ratio:.3g}", **both)]


def _describe_score(parts: list[Phrase], score: float) -> Phrase:
    if math.isnan(score) or math.isinf(score):
        return phrase("item.measured", parts=parts)
    return phrase("item.scored", parts=parts, score=f"{score:.3g}")


def _describe_tensor(facts: Facts, row: int) -> list[Phrase]:
    parts = []
    if facts.unequal[row] >= 0:  # a result table does not tell it
        parts.append(phrase("part.unequal", unequal=int(facts.unequal[row]), elements=int(facts.elements[row])))
    for name in ("rel_l2", "max_abs", "cosine"):
        value = number(facts.metric(name)[row], facts.metric_state(name)[row])
        if value is not None:
            parts.append(phrase(f"part.{name}", value=f"{value:.6g}"))
    return parts


def _format(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.6g}"
    return "NaN" if math.isnan(value) else f"{value:+}"


def _lone_statistics(context: Context, row: int) -> list[str]:
    """Statistics that only one side holds."""
    t, g = context.t_state[row] == State.ABSENT, context.g_state[row] == State.ABSENT
    return [word for word, lone in zip(STATISTICS, (t != g).tolist(), strict=True) if lone]


def _describe_statistics(context: Context, facts: Facts, row: int) -> list[Phrase]:
    parts = []
    for column, word in enumerate(STATISTICS):
        t = number(context.t_stats[row, column], context.t_state[row, column])
        g = number(context.g_stats[row, column], context.g_state[row, column])
        if t is not None and g is not None and not (t == g or (math.isnan(t) and math.isnan(g))):
            both = {"name": word, "target": _format(t), "golden": _format(g)}
            relative = number(facts.rel[row, column], facts.rel_state[row, column])
            if relative is not None and math.isfinite(relative):
                parts.append(phrase("part.changed_share", **both, share=f"{100 * relative:.3g}"))
            else:
                parts.append(phrase("part.changed", **both))
    return parts or [phrase("part.agree")]
