"""Columns of cells of some rows of a table, as codes into distinct values and as plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson

from dumpscope.domain.records import Float64, Int32, Int64
from dumpscope.export.table.cell_text import Cell

MISSING: Final = object()
"""Value of a series in a row without this side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Cells of one column in n rows: row i shows table[codes[i]], or numbers[i] if its code is -1.

    table: the same list in every block of rows, so that its texts are made once
    numbers: finite where the code is -1
    unit: follows every number ("%") and makes it a text
    """

    codes: Int32
    table: Sequence[Cell]
    numbers: Float64 | Int64 | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Cells of one column with a different text in every row."""

    texts: list[str]


Column = Cells | Texts
Bound = Callable[[Int64], Column]
"""Row numbers in, their cells out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value per row before a format turns it into text. Table entries may be None (not known) and MISSING (no such side)."""

    table: Sequence[Any]
    codes: Callable[[Int64], Int32]
    numbers: Callable[[Int64], Float64 | Int64] | None = None

    def shown(self, show: Callable[[Any], Cell], unit: str = "") -> Bound:
        """Cells with `show` applied to every distinct value; numbers stay as they are."""
        table = [show(value) for value in self.table]
        codes, numbers = self.codes, self.numbers
        return lambda rows: Cells(
            codes=codes(rows), table=table, numbers=None if numbers is None else numbers(rows), unit=unit
        )

    def values(self, rows: Int64) -> list[Any]:
        """The unchanged values of some rows."""
        codes = self.codes(rows).tolist()
        numbers = codes if self.numbers is None else self.numbers(rows).tolist()
        return [number if code < 0 else self.table[code] for code, number in zip(codes, numbers, strict=True)]


class CellWriter:
    """Text of one column, block by block: distinct values are formatted once, numbers in one go."""

    def __init__(
        self,
        text: Callable[[Cell], str],
        texts: Callable[[list[str]], list[str]],
        numbers: Callable[[list[str]], list[str]] = list,
    ) -> None:
        """text: writes one cell in the format; texts: writes many texts; numbers: takes many floats that are already text"""
        self._text, self._texts, self._numbers = text, texts, numbers
        self._table: Sequence[Cell] | None = None
        self._words = np.empty(0, object)

    def __call__(self, column: Column) -> list[str]:
        if isinstance(column, Texts):
            return self._texts(column.texts)
        if column.table is not self._table:
            self._table = column.table
            self._words = object_array(map(self._text, column.table))
        codes, numbers = column.codes, column.numbers
        found: list[str]
        if numbers is None:
            found = self._words[codes].tolist()
            return found
        (plain,) = np.nonzero(codes < 0)
        if len(plain) == len(codes):
            return self._written(numbers, column.unit)
        words = self._words[codes]
        if len(plain):
            words[plain] = self._written(numbers[plain], column.unit)
        found = words.tolist()
        return found

    def _written(self, numbers: Float64 | Int64, unit: str) -> list[str]:
        if numbers.dtype == np.int64:
            return list(map(self._text, numbers.tolist()))
        texts = float_texts(numbers.astype(np.float64, copy=False))
        return self._texts([text + unit for text in texts]) if unit else self._numbers(texts)


def object_array(values: Any) -> Any:
    """A one-dimensional array of any Python objects."""
    listed = list(values)
    out = np.empty(len(listed), object)
    out[:] = listed
    return out


def float_texts(numbers: Float64) -> list[str]:
    """`repr` of every number, five times as fast: both write the shortest digits that read back as the same float64."""
    if not len(numbers):
        return []
    size = np.abs(numbers)
    texts = orjson.dumps(np.ascontiguousarray(numbers), option=orjson.OPT_SERIALIZE_NUMPY).decode()[1:-1].split(",")
    # both give the same digits; exponents agree only if there is none, or a negative one of two or more digits
    (other,) = np.nonzero(~((size == 0) | ((size >= 1e-4) & (size < 1e16)) | ((size > 0) & (size < 1e-9))))
    for place, number in zip(other.tolist(), numbers[other].tolist(), strict=True):
        texts[place] = f"{texts[place][:-1]}0{texts[place][-1]}" if 1e-9 <= abs(number) < 1e-5 else repr(number)
    return texts
