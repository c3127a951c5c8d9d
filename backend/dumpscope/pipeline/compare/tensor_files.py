"""Pairs of tensor files: which are compared together and by how many threads. Each ends as facts or as the reason why not."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dumpscope.domain.facts import TensorFacts
from dumpscope.errors import TensorError
from dumpscope.metrics import (
    LARGEST_READ_WHOLE,
    ElementLayout,
    PairKind,
    compare_many,
    compare_tensors,
    load_kernel,
    pair_kind,
)
from dumpscope.readers.tensors import bulk, layout_cache, tensor_file
from dumpscope.readers.tensors.bulk import Files
from dumpscope.readers.tensors.layout_cache import Layout

LARGE: Final = 16 << 20
"""Elements from which one tensor pair is split over all threads; smaller ones are spread one per thread."""
ALONE: Final = 128 << 10
"""Elements below which pairs that are not read in bulk are compared by one thread: others would wait for the interpreter."""
SMALL: Final = bulk.LARGEST // 4
"""Elements up to which pairs are read in bulk: a file that is too large for that after all is compared by itself."""
CHUNK: Final = 64
"""Small tensor pairs per task."""
LAST: Final = 8
"""The smallest task."""
OPEN: Final = 512
"""Files that are open at the same time: systems allow a process 1024 of old."""
PAIR: Final = 20 << 10
"""What a pair costs one by one besides its bytes, some 100 us, in bytes of a side: whether the compiled kernel pays."""


@dataclass(frozen=True, slots=True)
class FilePair:
    """Names of two tensor files in the folders of their sides.

    row: item pair they belong to; elements: how many each should hold, 0 where that is not known
    reshaped: their shapes differ, and they are compared element by element in order
    """

    row: int
    target: str
    golden: str
    elements: int
    reshaped: bool = False


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
        together = _open(roots, stack) if load_kernel(2 * (4 * int(elements.sum()) + PAIR * len(pairs))) else None
        classes = np.searchsorted((ALONE if together is None else SMALL, LARGE), elements, side="right").tolist()
        small, middle, large = (
            [pair for pair, found in zip(pairs, classes, strict=True) if found == one] for one in range(3)
        )
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=max(1, threads)))
        stack.callback(pool.shutdown, cancel_futures=True)  # when nobody wants the rest
        if together is None:
            yield from map(alone, small)
        else:
            yield from pool.map(together.compare, _chunks(small, threads))
        yield from pool.map(alone, middle)
    for pair in large:
        yield [(pair.row, _compare(roots, pair, threads))]


def _chunks(pairs: list[FilePair], threads: int) -> Iterator[list[FilePair]]:
    """Chunks of up to CHUNK, smaller towards the end, so that no thread is left with much when the others are done."""
    most = max(1, min(CHUNK, OPEN // (2 * max(1, threads))))
    start = 0
    while start < len(pairs):
        size = min(most, max(LAST, (len(pairs) - start) // (2 * max(1, threads))))
        yield pairs[start : start + size]
        start += size


def _compare(roots: tuple[str, str], pair: FilePair, threads: int) -> TensorFacts | str:
    """Facts of two tensor files, or why they could not be read."""
    try:
        left = tensor_file.load(os.path.join(roots[0], pair.target), root=roots[0])
        right = tensor_file.load(os.path.join(roots[1], pair.golden), root=roots[1])
        if pair.reshaped and left.array.size == right.array.size:
            return compare_tensors(left.array, right.array.reshape(left.shape), threads=threads)
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
        folders = stack.enter_context(bulk.Folders(roots, calls))
    except OSError:  # each file will say so
        return None
    return _Together(roots, folders)


class _Together:
    """Compares chunks of small files; several threads may do so at the same time."""

    def __init__(self, roots: tuple[str, str], folders: bulk.Folders) -> None:
        self._roots = roots
        self._folders = folders
        self._sorts: dict[tuple[Layout, Layout], PairKind | None] = {}

    def compare(self, chunk: list[FilePair]) -> list[Found]:
        with self._folders.files([pair.target for pair in chunk], [pair.golden for pair in chunk]) as files:
            return self._compare(chunk, files)

    def _compare(self, pairs: list[FilePair], files: Files) -> list[Found]:
        facts: dict[int, TensorFacts | str] = {}
        sizes = list(zip(*files.sizes.tolist(), strict=True))
        left = list(range(len(pairs)))
        while left:
            known = layout_cache.learnt()
            sorts = {key: self._likely(*key) for key in {sizes[place] for place in left}}
            places = np.array([place for place in left for _ in sorts[sizes[place]]], np.int64)
            if places.size:
                tried = [sort for place in left for sort in sorts[sizes[place]]]
                otherwise = np.concatenate(([False], places[1:] == places[:-1]))
                compared = compare_many(tried, files.descriptors[:, places], otherwise)
                facts.update(
                    (place, found) for place, found in zip(places.tolist(), compared, strict=True) if found is not None
                )
                left = [place for place in left if place not in facts]
            for place in left.copy():  # one by one, until a file teaches how those like it are laid out
                left.remove(place)
                facts[place] = _compare(self._roots, pairs[place], 1)
                if layout_cache.learnt() != known:
                    break
        return [(pair.row, facts[place]) for place, pair in enumerate(pairs)]

    def _likely(self, target: int, golden: int) -> list[PairKind]:
        """What pairs of files of these sizes may be."""
        layouts = itertools.product(layout_cache.of_size(target), layout_cache.of_size(golden))
        return [sort for pair in layouts if (sort := self._sort(pair)) is not None]

    def _sort(self, layouts: tuple[Layout, Layout]) -> PairKind | None:
        if layouts not in self._sorts:
            target, golden = layouts
            sort = None
            if target.contiguous and golden.contiguous and target.model.shape == golden.model.shape:
                sides = [(side.model.array.dtype, _laid(side)) for side in layouts]
                sort = pair_kind(sides[0], sides[1], target.model.shape)
            self._sorts[layouts] = sort
        return self._sorts[layouts]


def _laid(layout: Layout) -> ElementLayout:
    ends = layout.size > LARGEST_READ_WHOLE and layout.end_parts is not None
    parts = layout.end_parts if ends and layout.end_parts is not None else layout.parts
    return ElementLayout(
        start=layout.start, size=layout.size, ends=layout_cache.END if ends else 0, parts=parts, fixed=layout.fixed
    )
