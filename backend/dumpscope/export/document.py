"""The JSON document of a comparison (`compare --json`, export.json, the summary): strict JSON, infinities as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dumpscope.domain.facts import VERDICT_WORDS, Origin
from dumpscope.domain.result import Answer, Side
from dumpscope.errors import Problem
from dumpscope.export.rows import ExportRow, metrics

SCHEMA: Final = 1
_EXACT = 2**53


def wire(value: Any) -> Any:
    """Any value as strict JSON can hold it: "nan", "inf" and "-inf" as text, integers past 2**53 as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else str(value)
    if isinstance(value, dict):
        return {str(key): wire(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [wire(one) for one in value]
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
            "stack": list(first.stack),
        },
        "origins": [origin_document(origin) for origin in answer.origins],
        "settings": list(answer.settings),
        "problems": [problem_document(problem) for problem in answer.problems],
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
    """One origin as the contract lists it."""
    return {
        "step": origin.step,
        "rank": origin.rank,
        "node": origin.node,
        "kind": origin.kind,
        "confidence": wire(float(origin.confidence)),
        "evidence": origin.evidence,
        "advice": origin.advice,
        "stack": list(origin.stack),
    }


def problem_document(problem: Problem) -> dict[str, str]:
    return {"loc": problem.loc, "kind": problem.kind, "message": problem.message}


def pair_document(row: ExportRow) -> dict[str, Any]:
    """One item pair as `--pairs` lists it."""
    return {
        "step": row.step,
        "rank": row.rank,
        "node": row.node or row.golden_node,
        "target": row.target.name if row.target else None,
        "golden": row.golden.name if row.golden else None,
        "match": row.match,
        "verdict": VERDICT_WORDS[row.verdict],
        "rule": row.rule,
        "metrics": wire(metrics(row)),
        "message": row.message,
    }


def json_text(answer: Answer, pairs: Iterable[ExportRow] | None = None) -> Iterator[str]:
    """The document as text, piece by piece: pairs are never held together in memory."""
    text = json.dumps(document(answer), ensure_ascii=False, allow_nan=False)
    if pairs is None:
        yield text + "\n"
        return
    yield text[:-1] + ', "pairs": ['
    separator = "\n"
    for row in pairs:
        yield separator + json.dumps(pair_document(row), ensure_ascii=False, allow_nan=False)
        separator = ",\n"
    yield "\n]}\n"
