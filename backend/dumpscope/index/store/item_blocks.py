"""Items of a rank as columns, and blocks of them as bytes, which is how the database holds them.

Rows took seven times the room, and ten times as long to store and to load. A block is whole by itself: texts that its items name
lie in it, so it is copied as it is, and one item costs the reading of one block.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import ROLE_WORDS, STATISTICS, Float64, Int8, Int32, Int64, Kind, State, UInt8
from dumpscope.errors import DumpscopeError
from dumpscope.index.store.codec import DERIVED_SUFFIXES, inflate, pack_states, unpack_states
from dumpscope.index.store.page import LAST_NUMBER
from dumpscope.index.store.recent import Recent
from dumpscope.texts import say

BLOCK: Final = 1024
"""Items of a block; the last one of a rank may hold fewer. Blocks are found by it, so it never changes."""

TEXTS: Final = ("path", "type", "dtype", "shape", "hash", "value", "data_name")
_NUMBERS: Final = ("node", "role", "kind", "requires_grad", "states")
_SIZE: Final = np.dtype("<u4")
_WHOLE: Final = ("<i1", "<i2", "<i4", "<i8")
_REAL: Final = ("<f4", "<f8")
_CLOSE: Final = 1 << 14
"""Codes of a block that span no more than this are told apart by a table."""
_LEVEL: Final = 1
"""Of zlib. Higher ones take twice as long for a hundredth less."""
KEPT: Final = 64
"""Blocks that stay in memory by their bytes: requests about one call read the same ones. Each takes some 100 kB."""
FEW: Final = 24
"""Numbers up to which Python compares them sooner than numpy begins."""
_NODES: Final = np.iinfo(np.int32).max
_LAST_STATE: Final = int(max(State))
_SHAPE: Final = re.compile(r"\[(?:-?[0-9]{1,19}(?:,-?[0-9]{1,19})*)?\]")
_LIMITS: Final[dict[str, tuple[int, int]]] = {
    "role": (0, len(ROLE_WORDS) - 1),
    "kind": (0, max(Kind)),
    "requires_grad": (-1, 1),
    "states": (0, 8 ** len(STATISTICS) - 1),
}
"""Smallest and largest value of a column. A result file comes from anybody: what lies outside is damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """A column of texts: codes into `texts`, negative where there is none."""

    codes: Int32
    texts: list[str]

    def at(self, row: int) -> str | None:
        code = int(self.codes[row])
        return None if code < 0 else self.texts[code]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemColumns:
    """Some items of a rank, by number. See `domain.records.Items` for the columns of the same names.

    number: of each item in its rank; shape: as JSON
    data_name: -1 where there is none, -2 - n for the item's own name and codec.DERIVED_SUFFIXES[n]
    stats: (n, 4), 0 where the state is not FINITE
    """

    number: Int64
    node: Int32
    role: Int8
    kind: Int8
    path: Coded
    type: Coded
    dtype: Coded
    shape: Coded
    stats: Float64
    states: UInt8
    requires_grad: Int8
    hash: Coded
    value: Coded
    data_name: Coded

    def __len__(self) -> int:
        return len(self.number)


def pack_block(items: ItemColumns, rows: slice) -> bytes:
    """These rows as a block. They must be neighbours in their rank."""
    node = items.node[rows]
    numbers: dict[str, NDArray[Any]] = {
        "node": np.diff(node, prepend=node[:1]),
        "role": items.role[rows],
        "kind": items.kind[rows],
        "requires_grad": items.requires_grad[rows],
        "states": pack_states(items.states[rows]),
    }
    texts: list[list[str]] = []
    for name in TEXTS:
        column: Coded = getattr(items, name)
        used, inverse = _distinct(column.codes[rows])
        absent = int(np.searchsorted(used, 0))
        numbers[name] = np.concatenate([used[:absent], np.arange(len(used) - absent)])[inverse]
        texts.append([column.texts[code] for code in used[absent:].tolist()])
    columns = [_narrow(numbers[name]) for name in (*_NUMBERS, *TEXTS)]
    columns += [_short(items.stats[rows, place]) for place in range(len(STATISTICS))]
    head = {
        "first": int(items.number[rows.start]),
        "node": int(node[0]),
        "count": len(node),
        "types": [column.dtype.str for column in columns],
        "texts": texts,
    }
    text = json.dumps(head, separators=(",", ":")).encode()
    parts = [np.array(len(text), _SIZE).tobytes(), text, *(column.tobytes() for column in columns)]
    return zlib.compress(b"".join(parts), _LEVEL)


def _distinct(codes: Int32) -> tuple[NDArray[Any], NDArray[Any]]:
    """The different codes, rising, and the place of each code among them: `np.unique`, without sorting where they lie close."""
    low = int(codes.min())
    span = int(codes.max()) - low + 1
    if span > _CLOSE:
        return np.unique(codes, return_inverse=True)
    found = np.zeros(span, bool)
    found[codes - low] = True
    return np.flatnonzero(found) + low, (np.cumsum(found) - 1)[codes - low]


def unpack_block(block: bytes, wanted: Int64 | None = None) -> ItemColumns:
    """Inverse of pack_block. wanted: only items of these numbers, rising; all where None

    Raises DumpscopeError for a damaged one.
    """
    try:
        if wanted is None:
            return _select(_parse(inflate(block)), None)
        return _select(_PARSED.get(block, lambda: _parse(inflate(block))), wanted)
    except (zlib.error, ValueError, LookupError, TypeError, RecursionError) as error:
        raise DumpscopeError(say("index.item_block_damaged"), hint=say("index.register_dump_again")) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsed:
    """A block whose numbers and texts were not looked at yet. columns: numbers, codes of texts, statistics"""

    first: int
    node: NDArray[np.int64]
    columns: list[NDArray[Any]]
    texts: list[Any]


_PARSED: Final[Recent[bytes, _Parsed]] = Recent(KEPT)


def _parse(content: bytes) -> _Parsed:
    size = int(np.frombuffer(content, _SIZE, 1)[0])
    at = _SIZE.itemsize + size
    head = json.loads(content[_SIZE.itemsize : at])
    count, first = _number(head["count"], 1, BLOCK), _number(head["first"], 0, LAST_NUMBER)
    allowed = (*(_WHOLE for _ in (*_NUMBERS, *TEXTS)), *(_REAL for _ in STATISTICS))
    columns: list[NDArray[Any]] = []
    for word, known in zip(head["types"], allowed, strict=True):
        if str(word).replace("|", "<") not in known:
            raise ValueError(word)
        columns.append(np.frombuffer(content, word, count, at))
        at += columns[-1].nbytes
    steps = columns[_NUMBERS.index("node")]
    node = _number(head["node"], 0, _NODES) + np.cumsum(steps, dtype=np.int64)
    if steps.min() < 0 or node[-1] > _NODES:
        raise ValueError("nodes of items fall")
    return _Parsed(first=first, node=node, columns=columns, texts=list(head["texts"]))


def _select(block: _Parsed, wanted: Int64 | None) -> ItemColumns:
    first, count = block.first, len(block.node)
    rows: Any = slice(None)
    if wanted is not None:
        rows = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + count)] - first
    columns = [column[rows] for column in block.columns]
    numbers = dict(zip((*_NUMBERS, *TEXTS), columns, strict=False))
    for name, (least, most) in _LIMITS.items():
        _check(numbers[name], least, most)
    coded: dict[str, Any] = {}
    for name, texts in zip(TEXTS, block.texts, strict=True):
        if not isinstance(texts, list):
            raise ValueError("texts that are none")
        least = -1 - len(DERIVED_SUFFIXES) if name == "data_name" else -1
        _check(numbers[name], least, len(texts) - 1)
        found = Coded(codes=numbers[name].astype(np.int32), texts=texts)
        coded[name] = found = found if wanted is None else _used(found)
        if not all(isinstance(text, str) for text in found.texts):
            raise ValueError("texts that are none")
        if name == "shape" and not all(map(_SHAPE.fullmatch, found.texts)):
            raise ValueError("a shape that is none")
    stats = np.stack([column.astype(np.float64) for column in columns[-len(STATISTICS) :]], axis=1)
    states = unpack_states(numbers["states"], len(STATISTICS))
    if not np.isfinite(stats).all() or (states > _LAST_STATE).any():
        raise ValueError("a number that its state does not tell")
    return ItemColumns(
        number=np.arange(first, first + count, dtype=np.int64)[rows],
        node=block.node[rows].astype(np.int32),
        role=numbers["role"].astype(np.int8),
        kind=numbers["kind"].astype(np.int8),
        stats=stats,
        states=states,
        requires_grad=numbers["requires_grad"].astype(np.int8),
        **coded,
    )


def _used(column: Coded) -> Coded:
    """The column with those texts alone that its rows name: few rows need not join all texts of many blocks."""
    codes = column.codes.tolist()
    places: dict[int, int] = {}
    found = [code if code < 0 else places.setdefault(code, len(places)) for code in codes]
    return Coded(codes=np.array(found, np.int32), texts=[column.texts[code] for code in places])


def _number(given: Any, least: int, most: int) -> int:
    """A whole number of a head. Raises ValueError for anything else."""
    if type(given) is not int or not least <= given <= most:
        raise ValueError(f"{str(given)[:40]} is not between {least} and {most}")
    return given


def _check(column: NDArray[Any], least: int, most: int) -> None:
    if not len(column):
        return
    values = column.tolist() if len(column) <= FEW else (column.min(), column.max())
    if min(values) < least or max(values) > most:
        raise ValueError(f"numbers that are not between {least} and {most}")


def join_columns(parts: Sequence[ItemColumns]) -> ItemColumns:
    """Items of one rank as one set of columns, each text once."""
    if len(parts) == 1:
        return parts[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("number", "node", "role", "kind", "stats", "states", "requires_grad")
    }
    arrays |= {name: _join_texts([getattr(part, name) for part in parts]) for name in TEXTS}
    return ItemColumns(**arrays)


def take_rows(items: ItemColumns, rows: Int64) -> ItemColumns:
    """These rows alone, their texts as they are."""
    arrays: dict[str, Any] = {
        name: getattr(items, name)[rows]
        for name in ("number", "node", "role", "kind", "stats", "states", "requires_grad")
    }
    for name in TEXTS:
        column: Coded = getattr(items, name)
        arrays[name] = Coded(codes=column.codes[rows], texts=column.texts)
    return ItemColumns(**arrays)


def _join_texts(parts: Sequence[Coded]) -> Coded:
    table: dict[str, int] = {}
    codes: list[Int32] = []
    for part in parts:
        known = np.array([table.setdefault(text, len(table)) for text in part.texts], dtype=np.int32)
        codes.append(
            np.where(part.codes < 0, part.codes, known[np.maximum(part.codes, 0)]) if len(known) else part.codes
        )
    return Coded(codes=np.concatenate(codes), texts=list(table))


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in as few bytes as hold them."""
    low, high = int(column.min()), int(column.max())
    for word in _WHOLE[:-1]:
        limits = np.iinfo(word)
        if limits.min <= low and high <= limits.max:
            return column.astype(word)
    return column.astype(_WHOLE[-1])


def _short(column: Float64) -> NDArray[Any]:
    """Numbers in four bytes where those hold them all: what was recorded of float32 and smaller is such."""
    with np.errstate(over="ignore", under="ignore"):
        short = column.astype("<f4")
    return short if np.array_equal(short.astype(np.float64), column) else column.astype("<f8")


def finite_only(stats: Float64, states: UInt8) -> Float64:
    """Statistics with 0 where the state is not FINITE."""
    return np.where(states == State.FINITE, stats, 0.0)
