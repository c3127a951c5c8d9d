"""Columns of the result tables: msprobe's names and order by mode, its older accuracy column, then ours (docs/tables.md)."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.facts import TENSOR_METRICS, Outcome, Verdict
from dumpscope.export.rows import IN_SHAPE, ExportRow, SideCells
from dumpscope.export.text import Cell, cell, guarded, percent

ACCURACY: Final = "Accuracy Reached or Not"
ACCURACY_WORDS: Final = {Verdict.YES: "Yes", Verdict.NA: "N/A", Verdict.WARNING: "Warning", Verdict.NO: "No"}
REAL: Final = (
    "Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio",
)  # fmt: skip
"""Columns of the first six of TENSOR_METRICS."""
_OF_SCALARS: Final = (2, 3)
"""Places of the metrics msprobe has for a single element."""
_STATS: Final = ("max", "min", "mean", "l2norm")
_MISSING: Final = {Outcome.SHAPE: "shape unmatched"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    cell: Callable[[ExportRow], Cell]


def columns(mode: str, *, stacks: bool) -> list[Column]:
    """Columns of a table in `mode` (tensor, statistics, md5 or structure), with the stack column where stacks exist."""
    listed = [*_basic()]
    if mode == "tensor":
        listed += [Column(name=name, cell=_tensor(place)) for place, name in enumerate(REAL)]
        listed += _stats("NPU", "target") + _stats("Bench", "golden")
    elif mode == "statistics":
        names = ("Max", "Min", "Mean", "L2norm")
        listed += [Column(name=f"{name} diff", cell=_diff(place)) for place, name in enumerate(names)]
        names = ("Max", "Min", "Mean", "Norm")
        listed += [Column(name=f"{name}RelativeErr", cell=_rel(place)) for place, name in enumerate(names)]
        listed += _stats("NPU", "target") + _stats("Bench", "golden")
    elif mode == "md5":
        listed += [
            Column(name="NPU MD5", cell=lambda row: _digest(row.target)),
            Column(name="BENCH MD5", cell=lambda row: _digest(row.golden)),
        ]
    listed += [
        Column(name="Requires_grad Consistent", cell=lambda row: _grad(row.target) == _grad(row.golden)),
        Column(name="Result", cell=lambda row: row.result),
        Column(name="Err_message", cell=lambda row: json.dumps(row.errors)),
    ]
    if stacks:
        listed.append(Column(name="NPU_Stack_Info", cell=_stack))
    if mode == "tensor":
        listed.append(Column(name="Data_name", cell=lambda row: str([_file(row.target), _file(row.golden)])))
    listed.append(Column(name=ACCURACY, cell=lambda row: ACCURACY_WORDS[row.verdict]))
    return listed + _ours(mode)


def _basic() -> list[Column]:
    listed = []
    for attribute, word in (("name", "Name"), ("dtype", "Dtype"), ("shape", "Tensor Shape")):
        listed += [
            Column(name=f"NPU {word}", cell=lambda row, what=attribute: _text(row.target, what)),  # type: ignore[misc]
            Column(name=f"Bench {word}", cell=lambda row, what=attribute: _text(row.golden, what)),  # type: ignore[misc]
        ]
    return [
        *listed,
        Column(name="NPU Requires_grad", cell=lambda row: _grad(row.target)),
        Column(name="Bench Requires_grad", cell=lambda row: _grad(row.golden)),
    ]


def _ours(mode: str) -> list[Column]:
    listed = [
        Column(name="Match", cell=lambda row: row.match),
        Column(name="Match Confidence", cell=lambda row: row.confidence),
        Column(name="Rule", cell=lambda row: row.rule),
        Column(name="Score", cell=lambda row: cell(row.score, "N/A")),
        Column(name="Message", cell=lambda row: guarded(row.message)),
        Column(name="Node", cell=lambda row: guarded(row.node or row.golden_node or "")),
        Column(name="Node Class", cell=lambda row: row.cls),
        Column(name="Step", cell=lambda row: row.step),
        Column(name="Rank", cell=lambda row: row.rank),
    ]
    if mode == "tensor":
        ours = (("Relative L2", "rel_l2"), ("Max ULP", "max_ulp"), ("Median ULP", "median_ulp"))
        listed += [Column(name=name, cell=_tensor(TENSOR_METRICS.index(metric))) for name, metric in ours]
        listed += [
            Column(name="Elements", cell=lambda row: cell(row.elements, "N/A")),
            Column(name="Unequal Elements", cell=lambda row: cell(row.unequal, "N/A")),
            Column(name="NPU NonFinite", cell=lambda row: cell(row.nonfinite_target, "N/A")),
            Column(name="Bench NonFinite", cell=lambda row: cell(row.nonfinite_golden, "N/A")),
            Column(name="NonFinite Disagree", cell=lambda row: cell(row.nonfinite_disagree, "N/A")),
        ]
    return listed


def _stats(word: str, side: str) -> list[Column]:
    return [Column(name=f"{word} {stat}", cell=_stat(side, place)) for place, stat in enumerate(_STATS)]


def _stat(side: str, place: int) -> Callable[[ExportRow], Cell]:
    def write(row: ExportRow) -> Cell:
        cells: SideCells | None = getattr(row, side)
        return "N/A" if cells is None else cell(cells.stats[place], "None")

    return write


def _tensor(place: int) -> Callable[[ExportRow], Cell]:
    def write(row: ExportRow) -> Cell:
        value = row.tensor[place]
        if value is not None:
            return value
        if row.nonfinite_disagree:
            if row.elements != 1:
                return "N/A"
            return math.nan if place in _OF_SCALARS else "unsupported"
        return _MISSING.get(row.outcome, "unsupported")

    return write


def _diff(place: int) -> Callable[[ExportRow], Cell]:
    return lambda row: cell(row.diff[place], "N/A")


def _rel(place: int) -> Callable[[ExportRow], Cell]:
    return lambda row: percent(row.rel[place])


def _text(side: SideCells | None, attribute: str) -> str:
    if side is None:
        return "N/A"
    value: str | None = getattr(side, attribute)
    return "N/A" if value is None else guarded(value)


def _digest(side: SideCells | None) -> str:
    """Recorded hash; for a value that is not a tensor the CRC-32 of its text, which is what msprobe shows."""
    if side is None or side.dtype is None:
        return "N/A"
    if side.hash is not None:
        return guarded(side.hash)
    if side.dtype in IN_SHAPE:
        return crc(side.shape or "")
    return crc(str(side.stats[0])) if side.dtype.startswith("<class") else "N/A"


def crc(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _grad(side: SideCells | None) -> Cell:
    return "N/A" if side is None or side.requires_grad is None else side.requires_grad


def _stack(row: ExportRow) -> str:
    return "N/A" if row.stack is None else str(list(row.stack))


def _file(side: SideCells | None) -> str:
    if side is None:
        return "N/A"
    return side.data_name or "-1"
