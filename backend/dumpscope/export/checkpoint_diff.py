"""A comparison of two checkpoints as a sentence, a table of text, JSON and CSV."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dumpscope.domain.checkpoints.differences import AGREE, STATES, CheckpointDiff, State, TensorDifference
from dumpscope.domain.checkpoints.tensors import Shape
from dumpscope.export.document import problem_document
from dumpscope.export.number_csv import plain_csv
from dumpscope.export.words import number
from dumpscope.texts import Phrase, english, phrase, said_of, tell

COLUMNS: Final = (
    "state", "name", "golden", "section", "match", "form", "target_dtype", "golden_dtype", "target_shape", "golden_shape",
    "elements", "unequal", "max_abs", "max_rel", "cosine", "rel_l2", "max_ulp", "nonfinite_target", "nonfinite_golden",
    "index", "target_value", "golden_value", "target_source", "golden_source", "note",
)  # fmt: skip
"""Columns of the CSV file, and keys of a tensor in JSON."""


def summarise(counts: Mapping[State, int], worst: TensorDifference | None) -> list[Phrase]:
    """What came out, in one sentence or two. worst: the first line of the result"""
    total = sum(counts.values())
    differ = counts.get("differs", 0)
    said: list[Phrase] = []
    if differ and worst is not None:
        said.append(
            phrase(
                "checkpoints.differ",
                count=differ, total=total, name=worst.name, share=percent(worst.share),
                largest=number(worst.max_abs), index=index_text(worst.index),
            )
        )  # fmt: skip
    elif total and sum(counts.get(state, 0) for state in AGREE) == total:
        said.append(phrase("checkpoints.all_agree", count=total))
    else:
        said.append(phrase("checkpoints.none_differs", count=total))
    parts = [
        phrase(f"checkpoints.count_{state}", count=counts[state])
        for state in STATES
        if state != "differs" and counts.get(state)
    ]
    if parts:
        said.append(phrase("checkpoints.rest", parts=parts))
    return said


def percent(share: float | None) -> str:
    """A share as text: "3.1 %", "< 0.01 %", "-"."""
    if share is None:
        return "-"
    if 0 < share < 1e-4:
        return "< 0.01 %"
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.1f} %".replace(".0 %", " %")


def index_text(index: Shape | None) -> str:
    return "-" if index is None else f"[{', '.join(map(str, index))}]"


def shape_text(shape: Shape | None) -> str:
    return "-" if shape is None else f"[{', '.join(map(str, shape))}]"


def diff_document(diff: CheckpointDiff, limit: int | None = None) -> dict[str, Any]:
    """Strict JSON of a result; limit: tensors in it, None for all."""
    worst = diff.tensors[0] if diff.tensors else None
    said = summarise(diff.counts, worst)
    return {
        "schema": 1,
        "target": diff.target,
        "golden": diff.golden,
        "target_kind": diff.target_kind,
        "golden_kind": diff.golden_kind,
        "summary": english(said),
        "total": len(diff.tensors),
        "counts": {state: diff.counts.get(state, 0) for state in STATES},
        "rules": list(diff.rules),
        "bytes": diff.bytes_read,
        "tensors": [tensor_document(one) for one in diff.tensors[:limit]],
        "problems": [problem_document(problem) for problem in diff.problems],
    }


def tensor_document(one: TensorDifference) -> dict[str, Any]:
    """One tensor; numbers that JSON has not are text."""
    found = {column: _plain(getattr(one, column)) for column in COLUMNS}
    return {**found, "note_said": said_of(one.note), "histogram": list(one.histogram)}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, tuple):
        return list(value)
    return value


def diff_csv(tensors: Sequence[TensorDifference]) -> str:
    """All tensors as CSV, with the columns COLUMNS."""
    rows = []
    for one in tensors:
        row = [getattr(one, column) for column in COLUMNS]
        rows.append([shape_text(value) if isinstance(value, tuple) else value for value in row])
    return plain_csv(COLUMNS, rows)


def table_lines(tensors: Sequence[TensorDifference]) -> list[tuple[State | None, str]]:
    """Lines of a table for a terminal, each with the state it tells; the first is the heading."""
    heading = [
        tell(f"checkpoints.column_{name}") for name in ("state", "tensor", "form", "changed", "max_abs", "rel_l2")
    ]
    rows: list[tuple[State | None, list[str]]] = [(None, heading)]
    for one in tensors:
        rows.append(
            (
                one.state,
                [
                    tell(f"checkpoints.state_{one.state}"), name_text(one), form_text(one), percent(one.share),
                    number(one.max_abs), number(one.rel_l2),
                ],
            )
        )  # fmt: skip
    widths = [max(_columns(row[place]) for _, row in rows) for place in range(len(heading))]
    return [
        (
            state,
            "  ".join(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True)).rstrip(),
        )
        for state, row in rows
    ]


def name_text(one: TensorDifference) -> str:
    """Its name, with the golden's where that is another one."""
    return one.name if one.golden in ("", one.name) else f"{one.name} = {one.golden}"


def form_text(one: TensorDifference) -> str:
    """Dtypes and shapes of both sides, once where they are the same."""
    sides = [
        f"{(dtype or '').removeprefix('torch.')} {shape_text(shape)}"
        for dtype, shape in ((one.target_dtype, one.target_shape), (one.golden_dtype, one.golden_shape))
        if dtype is not None
    ]
    text = " / ".join(dict.fromkeys(sides))
    return f"{text} ({tell(f'checkpoints.form_{one.form}')})" if one.form else text


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
