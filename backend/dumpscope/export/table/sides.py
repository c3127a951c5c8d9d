"""One side of a table: its leaf records as the columns that msprobe shows."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import INTEGERS, Int32, Int64, Kind, RankDump, Role, State, derived_name, names_item
from dumpscope.export.table.cells import MISSING, Series, object_array
from dumpscope.export.table.row_values import IN_SHAPE, Head, row_head
from dumpscope_format.naming import separator

_MISSING, _NONE = 0, 1
"""The first codes of every table of a side."""
_STATES: Final = {State.ABSENT: _NONE, State.FINITE: -1, State.NAN: 2, State.POS_INF: 3, State.NEG_INF: 4}
_FIRST: Final = (MISSING, None, float("nan"), float("inf"), float("-inf"), False, True)
_FALSE: Final = 5

_BARE: Final = -2
"""Index of a call without items."""

Places = Callable[[Int64], Int64]
"""Takes row numbers and returns item numbers: -1 if the row has no such side, -2 for a call without items."""


class SideTable:
    """Series over the rows of a table. Columns are by item; two extra entries at the end are for indices -2 and -1."""

    def __init__(self, dump: RankDump, places: Places, nodes: Places) -> None:
        """nodes: takes row numbers and returns the numbers of their calls, -1 if this side made no such call"""
        self.dump, self.places, self._node_of = dump, places, nodes
        items = dump.items
        self._names = object_array([*dump.nodes.names, None])
        self._nodes = _padded(items.node, 0, 0)
        self._suffixes, self._suffix = _suffixes(dump)
        heads, self._head = _heads(dump)
        self.dtype = self._series([one.dtype for one in heads], self._head)
        self.shape = self._series([one.shape for one in heads], self._head)
        self._stat_table, self._stat_codes = _statistics(dump, heads, self._head)
        self._stats = np.concatenate([items.stats, np.zeros((2, 4))])
        tensor = items.kind == Kind.TENSOR
        grad = _padded(np.where(tensor & (items.requires_grad >= 0), items.requires_grad + 2, _NONE), _NONE, _MISSING)
        self.requires_grad = self._series([MISSING, None, False, True], grad)
        self.hash = self._coded(items.hashes, items.hash)
        self.data_name = self._coded(items.data_names, items.data_name)
        self.digest = self._digests(heads)

    def names(self, rows: Int64) -> list[str | None]:
        """Full item names (see `item_name`); the call's name in a row without items, None without this side."""
        places = self.places(rows)
        nodes = np.where(places >= 0, self._nodes[places], np.where(places == _BARE, self._node_of(rows), -1))
        names = [
            node if node is None else node + suffix
            for node, suffix in zip(self._names[nodes], self._suffixes[self._suffix[places]], strict=True)
        ]
        codes = self.data_name.codes(rows)
        if (codes > _NONE).any():
            for place in np.flatnonzero(codes > _NONE).tolist():
                file = self.data_name.table[codes[place]]
                if names_item(file, self._names[nodes[place]]):
                    names[place] = file.rsplit(".", 1)[0]
        return names

    def calls(self, rows: Int64) -> list[str | None]:
        """Names of the calls of the rows."""
        found: list[str | None] = self._names[self._node_of(rows)].tolist()
        return found

    def stat(self, place: int) -> Series:
        """One of Max, Min, Mean, Norm; a scalar's value; None if a record has none."""
        return Series(
            table=self._stat_table,
            codes=lambda rows: self._stat_codes[self.places(rows), place],
            numbers=lambda rows: self._stats[self.places(rows), place],
        )

    def stat_codes(self, items: Int32) -> Int32:
        """Codes of the first statistic of some items; for an item that is no tensor, this is its value."""
        found: Int32 = self._stat_codes[items, 0]
        return found

    def stat_value(self, code: int) -> Any:
        """The value of a code of `stat_codes`."""
        return self._stat_table[code]

    def _series(self, table: Sequence[Any], codes: Int32) -> Series:
        places = self.places
        return Series(table=table, codes=lambda rows: codes[places(rows)])

    def _coded(self, table: Sequence[str], codes: Int32) -> Series:
        """Texts of a code column of the dump; -1 is None."""
        shifted = _padded(np.where(codes >= 0, codes + 2, _NONE), _NONE, _MISSING)
        return self._series([MISSING, None, *table], shifted)

    def _digests(self, heads: Sequence[Head]) -> Series:
        """The recorded hash; for a value that is no tensor the CRC-32 of its text, as in msprobe."""
        hashes = self.hash.table
        own = np.array([one.dtype in (MISSING, None) for one in heads])
        codes, head_of, places = self.hash.codes, self._head, self.places
        table = [*hashes, *map(_digest, heads)]

        def pick(rows: Int64) -> Int32:
            head_codes, hash_codes = head_of[places(rows)], codes(rows)
            return np.where((hash_codes > _NONE) & ~own[head_codes], hash_codes, len(hashes) + head_codes)

        return Series(table=table, codes=pick)


def _padded(column: Any, bare: int, missing: int) -> Int32:
    return np.concatenate([column, [bare, missing]]).astype(np.int32)


def _suffixes(dump: RankDump) -> tuple[Any, Int32]:
    """The part of an item's name after its call's name: distinct texts and codes."""
    items = dump.items
    width = len(items.paths) + 1
    key = items.role.astype(np.int64) * width + items.path
    span = len(Role) * width
    if dump.ref.traits.ptdbg_names:
        marks = np.array([separator(name) == "_" for name in dump.nodes.names] or [False])
        key += np.where(marks[items.node], span, 0)
    found, codes = np.unique(key, return_inverse=True)
    words = []
    for one in found.tolist():
        role, path = divmod(one % span, width)
        words.append(derived_name("_forward" if one >= span else "", role, items.paths[path]).removeprefix("_forward"))
    return object_array([*words, ""]), _padded(codes, len(words), len(words))


def _heads(dump: RankDump) -> tuple[list[Head], Int32]:
    """The heads of records: distinct heads and codes."""
    items = dump.items
    columns = (
        (items.kind, len(Kind)), (items.type, len(items.types)), (items.dtype, len(items.dtypes)),
        (items.shape, len(items.shapes)), (items.value, len(items.values)),
    )  # fmt: skip
    key, span = np.zeros(len(items), np.int64), 1
    for column, size in columns:
        if span * (size + 1) > 1 << 62:
            found, key = np.unique(key, return_inverse=True)
            span = len(found)
        key = key * (size + 1) + column + 1
        span *= size + 1
    _, first, codes = np.unique(key, return_index=True, return_inverse=True)
    heads = [Head(dtype=MISSING, shape=MISSING, value=MISSING), Head(dtype=None, shape=None, value=None)]
    for item in first.tolist():
        dtype, shape = _at(items.dtypes, items.dtype[item]), _at(items.shapes, items.shape[item])
        value, type_name = _at(items.values, items.value[item]), _at(items.types, items.type[item]) or ""
        heads.append(row_head(Kind(int(items.kind[item])), type_name, dtype, shape, value))
    return heads, _padded(codes + 2, _NONE, _MISSING)


def _at(table: Sequence[Any], code: int) -> Any:
    return table[code] if code >= 0 else None


def _statistics(dump: RankDump, heads: Sequence[Head], codes: Int32) -> tuple[list[Any], Int32]:
    """Table and codes (n + 2, 4) of stored statistics: integers and truth values unchanged; a scalar has its value in each."""
    items = dump.items
    by_state = np.full(max(_STATES) + 1, _NONE, np.int32)
    for state, code in _STATES.items():
        by_state[state] = code
    out = by_state[items.stat_state]
    table: list[Any] = list(_FIRST)
    dtypes = [*items.dtypes, ""]
    integer = np.array([name.startswith(INTEGERS) for name in dtypes])[items.dtype]
    truth = np.array([name.endswith("bool") for name in dtypes])[items.dtype]
    finite = out < 0
    whole = finite & (items.stats == np.floor(items.stats))
    bits = whole & truth[:, None]
    out[bits] = _FALSE + (items.stats[bits] != 0)
    counts = whole & (integer & ~truth)[:, None]
    distinct, places = np.unique(items.stats[counts], return_inverse=True)
    out[counts] = len(table) + places
    table += map(int, distinct.tolist())
    for (item, place), exact in (items.wide or {}).items():
        if finite[item, place]:
            out[item, place] = len(table)
            table.append(exact)
    scalar = items.kind != Kind.TENSOR
    out[scalar] = len(table) + codes[:-2][scalar, None]
    table += [one.value for one in heads]
    return table, np.concatenate([out, [[_NONE] * 4, [_MISSING] * 4]]).astype(np.int32)


def _digest(one: Head) -> Any:
    if one.dtype in (MISSING, None):
        return one.dtype
    if one.dtype in IN_SHAPE:
        return crc(one.shape or "")
    return crc(str(one.value)) if one.dtype.startswith("<class") else None


def crc(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
