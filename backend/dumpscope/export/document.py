"""The JSON document of a comparison (`compare --json`, export.json, the summary): strict JSON, infinities as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from json.encoder import encode_basestring as _quoted
from typing import Any, Final

from dumpscope.domain.coverage import GROUPS, Coverage
from dumpscope.domain.facts import VERDICT_WORDS, Origin, Suspect
from dumpscope.domain.joined import Joined
from dumpscope.domain.records import Int64
from dumpscope.domain.result import Answer, Reference, Side
from dumpscope.domain.suspects import list_suspects
from dumpscope.errors import Problem
from dumpscope.export.stack_frames import frame_documents, locate_call
from dumpscope.export.table.cell_text import Cell
from dumpscope.export.table.cells import CellWriter, Series
from dumpscope.export.table.unit_table import Table
from dumpscope.texts import english

SCHEMA: Final = 1
_EXACT = 2**53


def wire(value: Any) -> Any:
    """A value for strict JSON: "nan", "inf" and "-inf" as text, integers past 2**53 as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, dict):
        return {str(key): wire(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [one if (type(one) is float and math.isfinite(one)) or type(one) is str else wire(one) for one in value]
    return wire(value.item())  # a numpy scalar


def document(answer: Answer) -> dict[str, Any]:
    """The summary document, without pairs."""
    counts = answer.counts
    first = answer.first_no
    return {
        "schema": SCHEMA,
        "mode": answer.mode,
        "policy": answer.policy,
        "target": _side(answer.target),
        "golden": _side(answer.golden),
        "counts": {
            "nodes": counts.nodes,
            "items": counts.items,
            "yes": counts.yes,
            "no": counts.no,
            "warning": counts.warning,
            "not_comparable": counts.not_comparable,
            "unmatched_target": counts.unmatched_target,
            "unmatched_golden": counts.unmatched_golden,
            "unreadable": counts.unreadable,
        },
        "first_no": None
        if first is None
        else {
            "step": first.step,
            "rank": first.rank,
            "node": first.node,
            "item": first.item,
            "metrics": wire(first.metrics),
            "reason": first.reason,
            "reason_said": first.reason_said,
            "called_at": locate_call(first.stack),
            "stack": list(first.stack),
            "frames": frame_documents(first.stack),
        },
        "origins": [origin_document(origin) for origin in answer.origins],
        "settings": list(answer.settings),
        "problems": [problem_document(problem) for problem in answer.problems],
        "reference": None if answer.reference is None else reference_document(answer.reference),
        "joined": None if answer.joined is None else joined_document(answer.joined),
        "nothing_met": counts.nothing_met,
        "outcome": answer.outcome,
        "coverage": None if answer.coverage is None else coverage_document(answer.coverage),
        "suspects": [suspect_document(number, one) for number, one in enumerate(list_suspects(answer), start=1)],
    }


def coverage_document(coverage: Coverage) -> dict[str, Any]:
    """How many items were judged and why others were not. missing: items that matter and were not judged"""
    return {
        "items": coverage.items,
        **{group: coverage.group(group) for group in GROUPS},
        "missing": coverage.missing,
        "lost": coverage.lost,
        "reasons": coverage.counted(),
        "first": None if coverage.first is None else asdict(coverage.first),
        "ends": [asdict(end) for end in coverage.ends],
    }


def reference_document(reference: Reference) -> dict[str, Any]:
    """The reference dump: at how many item pairs each side is farther from it, and where the golden itself went wrong."""
    return {
        **_side(reference.side),
        "target_farther": reference.target_farther,
        "golden_farther": reference.golden_farther,
        "alike": reference.alike,
        "not_measured": reference.not_measured,
        "golden_off": [{**wire(asdict(one)), "frames": frame_documents(one.stack)} for one in reference.golden_off],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "path": side.path,
        "framework": side.framework,
        "task": side.task,
        "level": side.level,
        "steps": list(side.steps),
        "ranks": list(side.ranks),
    }


def origin_document(origin: Origin) -> dict[str, Any]:
    """One origin with the keys of the JSON document."""
    return {
        "step": origin.step,
        "rank": origin.rank,
        "node": origin.node,
        "kind": origin.kind,
        "confidence": wire(float(origin.confidence)),
        "evidence": origin.evidence,
        "evidence_said": origin.evidence_said,
        "advice": origin.advice,
        "advice_said": origin.advice_said,
        "explains": origin.explains,
        "path": list(origin.path),
        "ranks": list(origin.ranks),
        "steps": list(origin.steps),
        "spread": [{"rank": one.rank, "node": one.node} for one in origin.spread],
        "module": origin.module,
        "called_at": locate_call(origin.stack),
        "stack": list(origin.stack),
        "frames": frame_documents(origin.stack),
        "hidden": origin.hidden,
    }


def suspect_document(number: int, suspect: Suspect) -> dict[str, Any]:
    """One suspect with the keys of the JSON document; a setting has no call."""
    call = suspect.kind != "setting"
    return {
        "number": number,
        "kind": suspect.kind,
        "step": suspect.step if call else None,
        "rank": suspect.rank if call else None,
        "node": suspect.node if call else None,
        "times": wire(suspect.times),
        "count": suspect.count,
        "why": suspect.why,
        "why_said": suspect.why_said,
        "module": suspect.module,
        "called_at": locate_call(suspect.stack),
    }


def joined_document(joined: Joined) -> dict[str, Any]:
    """The joined ranks, and how they were joined."""
    return {
        "plan": joined.plan,
        "reasons": [english([reason]) for reason in joined.reasons],
        "units": [asdict(unit) for unit in joined.units],
    }


def problem_document(problem: Problem) -> dict[str, Any]:
    return {
        "loc": problem.loc,
        "kind": problem.kind,
        "message": problem.message,
        "said": problem.said,
        "records": problem.records,
    }


def pair_texts(table: Table) -> Iterator[list[str]]:
    """Every item pair for `--pairs`, a few thousand JSON objects at a time."""
    verdict = table.coded(VERDICT_WORDS, table.verdict).shown(str)
    words = [source.shown(str) for source in (table.match, table.rule)]
    columns = [words[0], table.confidence.shown(_same), table.leftover.shown(_same), verdict, words[1]]
    drawn = [CellWriter(_value, _strings) for _ in columns]
    metrics = [_Metric(name, series) for name, series in table.metrics()]
    head = f'{{"step": {table.step}, "rank": {table.rank}, "node": '
    for rows in table.blocks():
        measured = map("".join, zip(*(metric(rows) for metric in metrics), strict=True))
        yield [
            f'{head}{node}, "target": {target}, "golden": {golden}, "match": {match}, '
            f'"confidence": {sure}, "leftover": {leftover}, "beside": {beside}, "verdict": {word}, "rule": {rule}, '
            f'"metrics": {{{numbers[2:]}}}, "message": {message}}}'
            for node, target, golden, match, sure, leftover, word, rule, beside, numbers, message in zip(
                _strings(table.nodes(rows)),
                _strings(table.target.names(rows)),
                _strings(table.golden.names(rows)),
                *(draw(column(rows)) for draw, column in zip(drawn, columns, strict=True)),
                _strings(table.beside(rows)),
                measured,
                _strings(table.messages(rows)),
                strict=True,
            )
        ]


class _Metric:
    """One number of the pairs as `, "name": value`, or "" if it does not apply."""

    def __init__(self, name: str, series: Series) -> None:
        self._key = f', "{name}": '
        self._source = series.shown(lambda value: "" if value is None else self._key + _value(value))
        self._draw = CellWriter(self._cell, list, self._numbers)

    def __call__(self, rows: Int64) -> list[str]:
        return self._draw(self._source(rows))

    def _cell(self, value: Cell) -> str:
        return value if isinstance(value, str) else self._key + _value(value)

    def _numbers(self, texts: list[str]) -> list[str]:
        key = self._key
        return [key + text for text in texts]


def _same(value: Any) -> Any:
    return value


def _value(value: Any) -> str:
    return json.dumps(wire(value), ensure_ascii=False, allow_nan=False)


def _strings(texts: Sequence[str | None]) -> list[str]:
    return ["null" if text is None else _quoted(text) for text in texts]


def json_text(answer: Answer, tables: Iterable[Table] | None = None) -> Iterator[str]:
    """The document as text, piece by piece, with every item pair of `tables`; memory never holds all pairs."""
    text = json.dumps(document(answer), ensure_ascii=False, allow_nan=False)
    if tables is None:
        yield text + "\n"
        return
    yield text[:-1] + ', "pairs": ['
    separator = "\n"
    for table in tables:
        for pairs in pair_texts(table):
            yield separator + ",\n".join(pairs)
            separator = ",\n"
    yield "\n]}\n"
