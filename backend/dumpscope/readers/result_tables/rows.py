"""Rows of a result table: what one line says of an item of the target, an item of the golden, and their distance.

The columns are those of msprobe's and ptdbg's guides; names are read without regard to case and blanks. Which columns there are
depends on the mode (real data, statistics, md5) and on the version.
"""

from __future__ import annotations

import ast
import json
import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Number = int | float | str | None
"""A cell as a value; NaN and infinities are floats, a text is the value of an argument that is no tensor."""

METRICS: Final = {
    "cosine": "cosine", "eucdist": "euclidean", "maxabserr": "max_abs", "maxrelativeerr": "max_rel",
    "one thousandth err ratio": "ratio_1e3", "five thousandths err ratio": "ratio_5e3",
}  # fmt: skip
"""Columns of distances between tensors, and the metrics of `domain.facts.TENSOR_METRICS` that they hold."""

_STATISTICS: Final = ("max", "min", "mean", "l2norm")
_STATISTICS_MODE: Final = "max diff"
"""A column of the statistics mode, where `MaxRelativeErr` is one of a statistic."""
_NEEDED: Final = ("npu name", "bench name")
_NOTHING: Final = frozenset(("", "n/a", "nan", "none", "unsupported", "unmatched", "shape unmatched", "-"))
_NO_PARTNER: Final = frozenset(("", "n/a", "nan", "none", "n"))
"""Bench names of a row without a partner. ptdbg 2.3 wrote the letters of `Nan` into the three columns."""
_SIZES: Final = re.compile(r"[0-9]+")
_LITERALS: Final = threading.Lock()
"""Python 3.11 parses in one thread at a time only: its count of nested nodes is shared."""
_WORDS: Final = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One side of a row. stats: Max, Min, Mean, Norm; dtype "" where the item is None, `<class 'int'>` for an argument"""

    name: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    requires_grad: bool | None = None
    stats: tuple[Number, Number, Number, Number] = (None, None, None, None)
    hash: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """golden: None where the row has no partner; metrics: distances by name; said: verdict and message of the table itself"""

    target: Cell
    golden: Cell | None
    metrics: dict[str, float] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    stack: tuple[str, ...] = ()


def is_heading(names: Iterable[Any]) -> bool:
    """Whether these are the column names of a result table."""
    held = {_key(name) for name in names}
    return all(name in held for name in _NEEDED)


def read_row(record: Mapping[str, Any]) -> Row | None:
    """The row of these cells by column name; None for a line without a name."""
    cells = {_key(name): cell for name, cell in record.items()}
    target = _cell(cells, "npu")
    if target is None:
        return None
    golden = _cell(cells, "bench")
    return Row(
        target=target,
        golden=golden,
        metrics={} if golden is None else _metrics(cells, golden),
        said={
            key: text
            for key, text in (
                ("verdict", _text(cells.get("result")) or _text(cells.get("accuracy reached or not"))),
                ("message", _message(cells.get("err_message"))),
            )
            if text
        },
        stack=_frames(cells.get("npu_stack_info")),
    )


def read_rows(names: Sequence[Any], lines: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """The rows below a heading."""
    heading = [str(name) for name in names]
    for line in lines:
        row = read_row(dict(zip(heading, line, strict=False)))
        if row is not None:
            yield row


def _key(name: Any) -> str:
    return str(name).strip().lower() if name is not None else ""


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _cell(cells: Mapping[str, Any], side: str) -> Cell | None:
    name = _text(cells.get(f"{side} name"))
    if not name or (side == "bench" and name.lower() in _NO_PARTNER):
        return None
    dtype = _text(cells.get(f"{side} dtype")) or _text(cells.get(f"{side} tensor dtype"))
    check = _text(cells.get(f"{side} md5"))
    first, second, third, fourth = (_number(cells.get(f"{side} {word}")) for word in _STATISTICS)
    return Cell(
        name=name,
        dtype="" if dtype.lower() in _NOTHING else dtype,
        shape=_shape(cells.get(f"{side} tensor shape")),
        requires_grad={"true": True, "false": False}.get(_text(cells.get(f"{side} requires_grad")).lower()),
        stats=(first, second, third, fourth),
        hash=None if check.lower() in _NOTHING else check,
    )


def _metrics(cells: Mapping[str, Any], golden: Cell) -> dict[str, float]:
    if _STATISTICS_MODE in cells:
        return {}
    found = {}
    for column, metric in METRICS.items():
        text = _text(cells.get(column))
        if text.lower() in _NOTHING:
            continue
        number = _number(text)
        if isinstance(number, int | float):
            found[metric] = float(number)
    gap, size = found.get("euclidean"), golden.stats[3]
    if gap is not None and isinstance(size, int | float) and math.isfinite(size) and size > 0:
        found["rel_l2"] = gap / size
    return found


def _number(cell: Any) -> Number:
    """None for a cell that holds none; a text that is no number stays a text."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    text = str(cell).strip()
    word = _WORDS.get(text.lower())
    if word is not None:
        return word
    if text in ("True", "False"):
        return text == "True"
    if text.lower() in _NOTHING:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _shape(cell: Any) -> tuple[int, ...] | None:
    text = _text(cell)
    return tuple(map(int, _SIZES.findall(text))) if text.startswith(("[", "(")) else None


def _message(cell: Any) -> str:
    text = _text(cell)
    try:
        found = json.loads(text)
    except ValueError:
        return "" if text.lower() in ("", "none", "nan") else text
    return "; ".join(map(str, found)) if isinstance(found, list) else text


def _frames(cell: Any) -> tuple[str, ...]:
    """A call stack, which tables hold as Python writes a list of texts."""
    if isinstance(cell, list | tuple):
        return tuple(map(str, cell))
    text = _text(cell)
    if not text.startswith("["):
        return ()
    try:
        with _LITERALS:
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
