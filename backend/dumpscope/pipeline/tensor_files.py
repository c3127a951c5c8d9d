"""Pairs of tensor files: which are compared together and by how many threads. Each ends as facts or as the reason why not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dumpscope.domain.facts import TensorFacts
from dumpscope.domain.records import Int64
from dumpscope.errors import TensorError
from dumpscope.metrics import Sort, compare_many, compare_tensors, prepare, sort_of
from dumpscope.readers import bulk, tensorfile, twins
from dumpscope.readers.twins import Layout

LARGE: Final = 32 << 20
"""Bytes from which one tensor pair is split over all threads; smaller ones are spread one per thread."""
ALONE: Final = 512 << 10
"""Bytes below which pairs that cannot be read in bulk are compared by one thread: a second one would wait for the interpreter."""
TOGETHER: Final = 2 << 20
"""Bytes of a side that are read together: both sides should stay in a cache until they are measured."""
CHUNK: Final = 64
"""Small tensor pairs per task."""
_SLACK: Final = (
    4096  # bytes by which a file may be larger than its fellow, or twice that: names, or float32 beside bfloat16
)
_ROOM: Final = 2 * (2 * TOGETHER + CHUNK * (_SLACK + bulk.LINE)) + bulk.LINE


@dataclass(frozen=True, slots=True)
class FilePair:
    """Names of two tensor files in the folders of their sides; row: item pair they belong to."""

    row: int
    target: str
    golden: str


Found = tuple[int, TensorFacts | str]
"""Row of a pair, and its facts or why it could not be read."""


def compare_files(roots: tuple[str, str], pairs: list[FilePair], threads: int) -> Iterator[list[Found]]:
    """What comes of each pair, some at a time, the small ones first.

    roots: folders of target and golden that a file must not leave
    """

    def one_by_one(chunk: list[tuple[FilePair, int]]) -> list[Found]:
        return [(pair.row, _compare(roots, pair, 1)) for pair, _ in chunk]

    sizes = [_size(os.path.join(roots[0], pair.target)) for pair in pairs]
    with ExitStack() as stack:
        together = _open(roots, stack) if prepare(2 * sum(sizes)) else None
        limits = (ALONE, LARGE) if together is None else (bulk.LARGEST + 1, LARGE)
        classes = np.searchsorted(limits, sizes, side="right").tolist()
        small, middle, large = (
            [pair for pair, found in zip(zip(pairs, sizes, strict=True), classes, strict=True) if found == one]
            for one in range(3)
        )
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=max(1, threads)))
        stack.callback(pool.shutdown, cancel_futures=True)  # when nobody wants the rest
        if together is None:
            yield from map(one_by_one, _chunks(small))
        else:
            yield from pool.map(together.compare, _chunks(small))
        yield from pool.map(one_by_one, _chunks(middle))
    for pair, _ in large:
        yield [(pair.row, _compare(roots, pair, threads))]


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except (OSError, ValueError):  # no such file, or no such name: told of when it is opened
        return 0


def _chunks(pairs: list[tuple[FilePair, int]]) -> Iterator[list[tuple[FilePair, int]]]:
    """Pairs with the size of the target's file, up to CHUNK of them and TOGETHER bytes."""
    chunk: list[tuple[FilePair, int]] = []
    total = 0
    for pair, size in pairs:
        if chunk and (len(chunk) == CHUNK or total + size > TOGETHER):
            yield chunk
            chunk, total = [], 0
        chunk.append((pair, size))
        total += size
    if chunk:
        yield chunk


def _compare(roots: tuple[str, str], pair: FilePair, threads: int) -> TensorFacts | str:
    """Facts of two tensor files, or why they could not be read."""
    try:
        left = tensorfile.load(os.path.join(roots[0], pair.target), root=roots[0])
        right = tensorfile.load(os.path.join(roots[1], pair.golden), root=roots[1])
        if left.shape != right.shape:
            shapes = f"shape {list(left.shape)}, the golden file {list(right.shape)}"
            return f"{Path(pair.target).name}: the file holds {shapes}"
        return compare_tensors(left.array, right.array, threads=threads)
    except TensorError as error:
        return str(error)


def _open(roots: tuple[str, str], stack: ExitStack) -> _Together | None:
    """The way to compare many pairs at once, None where this system has none."""
    calls = bulk.file_calls()
    if calls is None:
        return None
    try:
        target, golden = (stack.enter_context(bulk.Folder(root, calls)) for root in roots)
    except OSError:  # each file will say so
        return None
    return _Together(roots, target, golden)


@dataclass(frozen=True, slots=True)
class _Match:
    """Two layouts that go together; starts: byte of the first element in each file."""

    sort: Sort
    starts: tuple[int, int]


class _Together:
    """Compares chunks of small files; several threads may do so at the same time."""

    def __init__(self, roots: tuple[str, str], target: bulk.Folder, golden: bulk.Folder) -> None:
        self._roots = roots
        self._target = target
        self._golden = golden
        self._matches: dict[tuple[Layout, Layout], _Match | None] = {}
        self._idle: list[np.ndarray[Any, Any]] = []

    def compare(self, chunk: list[tuple[FilePair, int]]) -> list[Found]:
        try:
            buffer = self._idle.pop()
        except IndexError:
            buffer = np.empty(_ROOM, np.uint8)
        target_slots, golden_slots, room = _slots(buffer, [size for _, size in chunk])
        pairs = [pair for pair, _ in chunk]
        target = self._target.read([pair.target for pair in pairs], target_slots, room)
        golden = self._golden.read([pair.golden for pair in pairs], golden_slots, room)
        facts: dict[int, TensorFacts | str] = {}
        left = list(range(len(pairs)))
        while left:
            known = twins.learnt()
            matches = [
                None if first is None or second is None else self._match(first, second)
                for first, second in zip(target.layouts(left), golden.layouts(left), strict=True)
            ]
            ready = [(place, match) for place, match in zip(left, matches, strict=True) if match is not None]
            if ready:
                places = [place for place, _ in ready]
                starts = np.array([match.starts for _, match in ready], np.int64)
                addresses = target_slots[places] + starts[:, 0], golden_slots[places] + starts[:, 1]
                facts.update(zip(places, compare_many([match.sort for _, match in ready], *addresses), strict=True))
            left = [place for place, match in zip(left, matches, strict=True) if match is None]
            for place in left.copy():  # one by one, until a file teaches how those like it are laid out
                left.remove(place)
                facts[place] = _compare(self._roots, pairs[place], 1)
                if twins.learnt() != known:
                    break
        self._idle.append(buffer)
        return [(pair.row, facts[place]) for place, pair in enumerate(pairs)]

    def _match(self, target: Layout, golden: Layout) -> _Match | None:
        key = target, golden
        if key not in self._matches:
            first, second = target.model, golden.model
            sort = None
            if target.contiguous and golden.contiguous and first.shape == second.shape:
                sort = sort_of(first.array.dtype, second.array.dtype, first.shape)
            self._matches[key] = None if sort is None else _Match(sort, (target.start, golden.start))
        return self._matches[key]


def _slots(buffer: np.ndarray[Any, Any], sizes: list[int]) -> tuple[Int64, Int64, Int64]:
    """Addresses in the buffer for target and golden files, and bytes there for each, shapes (n,)."""
    room = -(-(2 * np.array(sizes, np.int64) + _SLACK) // bulk.LINE) * bulk.LINE
    ends = np.cumsum(np.concatenate((room, room)))
    base = buffer.__array_interface__["data"][0]
    starts = ends - np.concatenate((room, room)) + base + -base % bulk.LINE
    return starts[: len(sizes)], starts[len(sizes) :], room
