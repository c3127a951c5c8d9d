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
from dumpscope.readers.bulk import Files
from dumpscope.readers.twins import Layout

LARGE: Final = 16 << 20
"""Elements from which one tensor pair is split over all threads; smaller ones are spread one per thread."""
ALONE: Final = 128 << 10
"""Elements below which pairs that are not read in bulk are compared by one thread: others would wait for the interpreter."""
SMALL: Final = bulk.LARGEST // 4
"""Elements up to which pairs are read in bulk: a file that is too large for that after all is compared by itself."""
TOGETHER: Final = 1 << 20
"""Bytes of a side that are read together: both sides should stay in a cache until they are measured."""
CHUNK: Final = 64
"""Small tensor pairs per task, however many of them are read together."""
OPEN: Final = 512
"""Files that are open at the same time: systems allow a process 1024 of old."""
PAIR: Final = 20 << 10
"""What a pair costs one by one besides its bytes, some 100 us, in bytes of a side: whether the compiled kernel pays."""
_ROOM: Final = 2 * (TOGETHER + CHUNK * bulk.LINE) + bulk.LINE


@dataclass(frozen=True, slots=True)
class FilePair:
    """Names of two tensor files in the folders of their sides.

    row: item pair they belong to; elements: how many each should hold, 0 where that is not known
    """

    row: int
    target: str
    golden: str
    elements: int


Found = tuple[int, TensorFacts | str]
"""Row of a pair, and its facts or why it could not be read."""


def compare_files(roots: tuple[str, str], pairs: list[FilePair], threads: int) -> Iterator[list[Found]]:
    """What comes of each pair, some at a time, the small ones first.

    roots: folders of target and golden that a file must not leave
    """

    def alone(pair: FilePair) -> list[Found]:
        return [(pair.row, _compare(roots, pair, 1))]

    elements = np.array([pair.elements for pair in pairs], np.int64)
    with ExitStack() as stack:
        together = _open(roots, stack) if prepare(2 * (4 * int(elements.sum()) + PAIR * len(pairs))) else None
        classes = np.searchsorted((ALONE if together is None else SMALL, LARGE), elements, side="right").tolist()
        small, middle, large = (
            [pair for pair, found in zip(pairs, classes, strict=True) if found == one] for one in range(3)
        )
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=max(1, threads)))
        stack.callback(pool.shutdown, cancel_futures=True)  # when nobody wants the rest
        if together is None:
            yield from map(alone, small)
        else:
            chunk = max(1, min(CHUNK, OPEN // (2 * max(1, threads))))
            chunks = (small[start : start + chunk] for start in range(0, len(small), chunk))
            yield from pool.map(together.compare, chunks)
        yield from pool.map(alone, middle)
    for pair in large:
        yield [(pair.row, _compare(roots, pair, threads))]


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
    """Two layouts that go together, and the byte of the first element in each file."""

    sort: Sort
    target_start: int
    golden_start: int


class _Together:
    """Compares chunks of small files; several threads may do so at the same time."""

    def __init__(self, roots: tuple[str, str], target: bulk.Folder, golden: bulk.Folder) -> None:
        self._roots = roots
        self._target = target
        self._golden = golden
        self._matches: dict[tuple[Layout, Layout], _Match | None] = {}
        self._idle: list[np.ndarray[Any, Any]] = []

    def compare(self, chunk: list[FilePair]) -> list[Found]:
        try:
            buffer = self._idle.pop()
        except IndexError:
            buffer = np.empty(_ROOM, np.uint8)
        target = self._target.files([pair.target for pair in chunk])
        golden = self._golden.files([pair.golden for pair in chunk])
        rooms = target.rooms(), golden.rooms()
        found: list[Found] = []
        try:
            for start, stop in _groups(rooms[0].tolist(), rooms[1].tolist()):
                slots = _slots(buffer, rooms[0][start:stop], rooms[1][start:stop])
                target.read(start, stop, slots[0])
                golden.read(start, stop, slots[1])
                found += self._compare(chunk, target, golden, list(range(start, stop)))
        finally:
            target.close()
            golden.close()
        self._idle.append(buffer)
        return found

    def _compare(self, pairs: list[FilePair], target: Files, golden: Files, wanted: list[int]) -> list[Found]:
        facts: dict[int, TensorFacts | str] = {}
        left = wanted
        while left:
            known = twins.learnt()
            matches = [
                None if first is None or second is None else self._match(first, second)
                for first, second in zip(target.layouts(left), golden.layouts(left), strict=True)
            ]
            ready = [(place, match) for place, match in zip(left, matches, strict=True) if match is not None]
            if ready:
                places = [place for place, _ in ready]
                targets = target.places(places, np.array([match.target_start for _, match in ready]))
                goldens = golden.places(places, np.array([match.golden_start for _, match in ready]))
                compared = compare_many([match.sort for _, match in ready], targets, goldens)
                for place, found in zip(places, compared, strict=True):
                    facts[place] = _compare(self._roots, pairs[place], 1) if found is None else found  # cut meanwhile
            left = [place for place, match in zip(left, matches, strict=True) if match is None]
            for place in left.copy():  # one by one, until a file teaches how those like it are laid out
                left.remove(place)
                facts[place] = _compare(self._roots, pairs[place], 1)
                if twins.learnt() != known:
                    break
        return [(pairs[place].row, facts[place]) for place in wanted]

    def _match(self, target: Layout, golden: Layout) -> _Match | None:
        key = target, golden
        if key not in self._matches:
            first, second = target.model, golden.model
            sort = None
            if target.contiguous and golden.contiguous and first.shape == second.shape:
                sort = sort_of(first.array.dtype, second.array.dtype, first.shape)
            self._matches[key] = None if sort is None else _Match(sort, target.start, golden.start)
        return self._matches[key]


def _groups(targets: list[int], goldens: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges of pairs of up to TOGETHER bytes a side, one pair at least."""
    start = target = golden = 0
    for place, (first, second) in enumerate(zip(targets, goldens, strict=True)):
        if place > start and max(target + first, golden + second) > TOGETHER:
            yield start, place
            start, target, golden = place, 0, 0
        target += first
        golden += second
    yield start, len(targets)


def _slots(buffer: np.ndarray[Any, Any], target: Int64, golden: Int64) -> tuple[Int64, Int64]:
    """Addresses in the buffer for files that need so many bytes, shapes (n,)."""
    rooms = np.concatenate((target, golden))
    rooms += -rooms % bulk.LINE
    start = buffer.__array_interface__["data"][0]
    starts = start + -start % bulk.LINE + rooms.cumsum() - rooms
    return starts[: len(target)], starts[len(target) :]
