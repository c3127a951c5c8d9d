"""Between numpy columns and database rows: states beside numbers, packed flags and histograms, storable text."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.facts import ERROR_BINS, Spread
from dumpscope.domain.records import Float64, Int8, Int32, Int64, State, UInt8
from dumpscope.errors import Problem
from dumpscope.texts import restore, said_of, say

T = TypeVar("T")

DERIVED_SUFFIXES: Final = (".pt", ".npy")
"""A data name that is the item's own name and one of these is stored by its place here, not as text."""

PROBLEM_LIMIT: Final = 1000
"""Problems kept per dump and per comparison; beyond that only their number is."""

INFLATED_LIMIT: Final = 1 << 30
"""Bytes that one compressed value may become."""

HISTOGRAM_BINS: Final = len(ERROR_BINS) + 2
STATE_BITS: Final = 3
_COUNT_MASK: Final = (1 << 56) - 1
_FINITE: Final = int(State.FINITE)
_UNUSUAL: Final[dict[int, float | None]] = {
    int(State.ABSENT): None, int(State.NAN): math.nan, int(State.POS_INF): math.inf, int(State.NEG_INF): -math.inf,
}  # fmt: skip
"""Members of an enumeration are slow to look up, and these are compared for every number."""


def pack_states(states: UInt8) -> Int64:
    """(n, k) states to (n,) integers, three bits a state, the first lowest; k is at most 10."""
    packed = np.zeros(len(states), dtype=np.int64)
    for place in range(states.shape[1]):
        packed |= states[:, place].astype(np.int64) << np.int64(place * STATE_BITS)
    return packed


def unpack_states(packed: NDArray[np.signedinteger[Any]], width: int) -> UInt8:
    """Inverse of pack_states: (n,) to (n, width). Integers may have as few bytes as hold them."""
    shifts = np.arange(0, width * STATE_BITS, STATE_BITS, dtype=packed.dtype)
    states: UInt8 = (packed[:, None] >> shifts & packed.dtype.type(7)).astype(np.uint8)
    return states


def number_columns(values: Float64, states: UInt8) -> list[list[float | None]]:
    """(n, k) numbers as k lists in which everything not finite is None; the states say what was there."""
    columns: list[list[float | None]] = []
    for place in range(values.shape[1]):
        column: list[float | None] = values[:, place].tolist()
        for row in np.flatnonzero(states[:, place] != State.FINITE).tolist():
            column[row] = None
        columns.append(column)
    return columns


def numbers(columns: Sequence[Sequence[float | None]], states: UInt8) -> Float64:
    """Inverse of number_columns: absent numbers come back as NaN, infinities as themselves."""
    if not columns:
        return np.zeros(states.shape, dtype=np.float64)
    return with_states(np.stack([np.array(column, dtype=np.float64) for column in columns], axis=1), states)


def with_states(finite: Float64, states: UInt8) -> Float64:
    """Numbers with what their states say in the places that are not finite; NaN where absent."""
    values: Float64 = finite.copy()
    values[states == State.POS_INF] = np.inf
    values[states == State.NEG_INF] = -np.inf
    values[(states == State.NAN) | (states == State.ABSENT)] = np.nan
    return values


def states_of(values: Float64, absent: Any = None) -> UInt8:
    """State of each number; `absent` is a mask of the same shape."""
    states = np.full(values.shape, State.FINITE, dtype=np.uint8)
    states[np.isnan(values)] = State.NAN
    states[np.isposinf(values)] = State.POS_INF
    states[np.isneginf(values)] = State.NEG_INF
    if absent is not None:
        states[absent] = State.ABSENT
    return states


def number(value: float | None, packed: int, place: int) -> float | None:
    """One stored number with its state: None where absent, otherwise a float that may be nan or inf."""
    state = packed >> place * STATE_BITS & 7
    return value if state == _FINITE else _UNUSUAL[state]


def severities(scores: Float64) -> Float64:
    """Scores as never-null numbers to sort by: -1 where nothing was compared (nan)."""
    return np.where(np.isnan(scores), -1.0, scores)


def scores(severity: Float64) -> Float64:
    """Inverse of severities."""
    return np.where(severity < 0, np.nan, severity)


def score(severity: float) -> float | None:
    return None if severity < 0 else severity


def pack_flags(equal: Int8, dtype_differs: Int8) -> Int64:
    return (equal.astype(np.int64) + 1) | (dtype_differs.astype(np.int64) & 1) << 2


def unpack_flags(flags: Int64) -> tuple[Int8, Int8]:
    return ((flags & 3) - 1).astype(np.int8), (flags >> 2 & 1).astype(np.int8)


def pack_histograms(absolute: Sequence[int], relative: Sequence[int]) -> bytes | None:
    """Both histograms as 8 bytes per bin that is not empty: bin number above 56 bits of count. None without histograms."""
    if not absolute and not relative:
        return None
    counts = np.zeros(2 * HISTOGRAM_BINS, dtype=np.uint64)
    counts[: len(absolute)] = absolute
    counts[HISTOGRAM_BINS : HISTOGRAM_BINS + len(relative)] = relative
    filled = np.flatnonzero(counts)
    packed = filled.astype(np.uint64) << np.uint64(56) | (counts[filled] & np.uint64(_COUNT_MASK))
    content: bytes = packed.astype("<u8").tobytes()
    return content


def unpack_histograms(data: bytes | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Inverse of pack_histograms; two empty tuples where nothing was stored."""
    if data is None:
        return (), ()
    packed = np.frombuffer(data, dtype="<u8")
    counts = np.zeros(2 * HISTOGRAM_BINS, dtype=np.int64)
    counts[(packed >> np.uint64(56)).astype(np.int64)] = (packed & np.uint64(_COUNT_MASK)).astype(np.int64)
    both = counts.tolist()
    return tuple(both[:HISTOGRAM_BINS]), tuple(both[HISTOGRAM_BINS:])


def inflate(data: bytes) -> bytes:
    """What zlib compressed. A result file comes from anybody, so there is a limit to what becomes of a few bytes of it.

    Raises zlib.error for anything else, and beyond INFLATED_LIMIT.
    """
    machine = zlib.decompressobj()
    content = machine.decompress(data, INFLATED_LIMIT + 1)
    if not machine.eof or len(content) > INFLATED_LIMIT:
        raise zlib.error("cut off, or beyond the limit")
    return content


def pack_makers(pair: Int32, received: Int64, handed: Int64) -> bytes:
    """A unit's data flow (see `analysis.makers.Trace`), compressed: some hundredths of a byte an item where layers repeat.

    pair: node pair of each item pair. Kept are the items of each node pair, then each item's distance to its maker, negative
    for `handed`, 0 where nothing tells.
    """
    counts = np.bincount(pair)
    distance = np.where(received >= 0, pair - received, np.where(handed >= 0, handed - pair, 0))
    return zlib.compress(np.concatenate([[len(counts)], counts, distance]).astype("<i4").tobytes())


def unpack_makers(data: bytes) -> tuple[Int32, Int32, Int32]:
    """Inverse of pack_makers: (pair, received, handed)."""
    numbers = np.frombuffer(inflate(data), "<i4")
    nodes = int(numbers[0])
    pair = np.repeat(np.arange(nodes, dtype=np.int32), numbers[1 : nodes + 1])
    distance = numbers[nodes + 1 :]
    received = np.where(distance > 0, pair - distance, -1).astype(np.int32)
    return pair, received, np.where(distance < 0, pair + distance, -1).astype(np.int32)


def pack_spread(spread: Spread) -> bytes:
    """How differences went on in a unit, compressed: each edge as the distance of its reader from the one before it, and of its
    maker from its reader; then a bit for each node pair that differs."""
    step = np.diff(spread.reader, prepend=0)
    numbers = np.concatenate([[len(spread.reader), len(spread.differs)], step, spread.reader - spread.maker])
    return zlib.compress(numbers.astype("<i4").tobytes() + np.packbits(spread.differs).tobytes())


def unpack_spread(data: bytes) -> Spread:
    """Inverse of pack_spread."""
    content = inflate(data)
    edges, nodes = np.frombuffer(content, "<i4", 2).tolist()
    numbers = np.frombuffer(content, "<i4", 2 * edges, 8)
    reader = np.cumsum(numbers[:edges], dtype=np.int32)
    differs = np.unpackbits(np.frombuffer(content, np.uint8, offset=8 + 8 * edges), count=nodes).astype(bool)
    return Spread(reader=reader, maker=reader - numbers[edges:].astype(np.int32), differs=differs)


def pack_producers(producer: Int32, inferred: Int32) -> bytes:
    """Who made a rank's items (see `analysis.makers.trace_rank`), compressed: each item's distance to the record that the dump
    names (`producer`), negative to one told by values (`told`), 0 where nothing tells."""
    place = np.arange(len(producer))
    distance = np.where(producer >= 0, place - producer, np.where(inferred >= 0, inferred - place, 0))
    return zlib.compress(distance.astype("<i4").tobytes())


def unpack_producers(data: bytes) -> tuple[Int32, Int32]:
    """(producer, told) of each item: the record that the dump names, and the same where it names one, else told by values."""
    distance = np.frombuffer(inflate(data), "<i4")
    place = np.arange(len(distance), dtype=np.int32)
    producer = np.where(distance > 0, place - distance, -1).astype(np.int32)
    return producer, np.where(distance != 0, place - np.abs(distance), -1).astype(np.int32)


def storable(texts: Sequence[str]) -> list[str]:
    """Texts that both databases accept: lone surrogates become U+FFFD, NUL becomes U+2400."""
    try:
        if b"\0" not in "\n".join(texts).encode():
            return list(texts)
    except UnicodeEncodeError:
        pass
    return [_storable(text) for text in texts]


def _storable(text: str) -> str:
    clean = text.replace("\0", "\u2400")
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in clean)


def to_json(data: Any) -> str:
    """Compact JSON text for small columns; not finite numbers are refused."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def codes(column: Sequence[int | None], dtype: Any = np.int32) -> Any:
    """A nullable integer column as an array, -1 where null."""
    return np.array([-1 if value is None else value for value in column], dtype=dtype)


def distinct(values: Iterable[T | None]) -> tuple[Int32, list[T]]:
    """Codes into the list of distinct values, -1 for None; order of first appearance."""
    table: dict[T, int] = {}
    found = [-1 if value is None else table.setdefault(value, len(table)) for value in values]
    return np.array(found, dtype=np.int32), list(table)


def nullable(column: Int32 | Int64) -> list[int | None]:
    """An integer column as a list, None where -1."""
    values: list[int | None] = column.tolist()
    for row in np.flatnonzero(column < 0).tolist():
        values[row] = None
    return values


def column_values(values: dict[str, Any]) -> dict[str, Any]:
    """Column values with lists and dicts as JSON text, problems capped."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name == "problems":
            out[name] = to_json(capped_problems([_storable_problem(problem) for problem in value]))
        elif isinstance(value, list | dict):
            out[name] = to_json(value)
        elif isinstance(value, str):
            out[name] = storable([value])[0]
        else:
            out[name] = value
    return out


def capped_problems(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most PROBLEM_LIMIT problems, the last one then says how many were left out."""
    if len(problems) <= PROBLEM_LIMIT:
        return problems
    left = len(problems) - PROBLEM_LIMIT + 1
    return [
        *problems[: PROBLEM_LIMIT - 1],
        _storable_problem(Problem(loc="", kind="more", message=say("problem.more", count=left))),
    ]


def _storable_problem(problem: Problem) -> dict[str, Any]:
    loc, kind, message = storable([problem.loc, problem.kind, problem.message])
    return {"loc": loc, "kind": kind, "message": message, "said": problem.said}


def phrases_to_json(text: str) -> str | None:
    """The phrases behind a sentence as a column value; None where it has none."""
    said = said_of(text)
    return None if said is None else to_json(said)


def with_phrases(text: str, said: str | None) -> str:
    """A stored sentence with the phrases that were stored beside it."""
    return restore(text, json.loads(said)) if said else text


def calls_digest(names: Iterable[str | None], *columns: NDArray[Any]) -> int:
    """Digest of calls in order: the same for ranks that make the same ones. columns: more of each, numbers"""
    found = blake2b("\0".join([name or "" for name in names]).encode("utf-8", "surrogatepass"), digest_size=8)
    for column in columns:
        found.update(np.ascontiguousarray(column, np.int8).tobytes())
    return int.from_bytes(found.digest(), "little", signed=True)
