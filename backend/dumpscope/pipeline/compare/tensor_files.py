"""Pairs of tensor files and how many threads compare them. Each ends as facts or as the reason why not."""

from __future__ import annotations

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
from dumpscope.metrics import compare_tensors, load_kernel
from dumpscope.readers.tensors import tensor_file

LARGE: Final = 16 << 20
"""Elements from which one tensor pair is split over all threads; smaller ones are spread one per thread."""
ALONE: Final = 32 << 10
"""Elements below which pairs are compared by one thread: others would wait for the interpreter more than they compute."""
PAIR: Final = 20 << 10
"""What a pair costs besides its bytes, some 100 us, in bytes of a side: whether the compiled kernel pays."""

TOGETHER: Final = 32
"""Small pairs that are handed on together: noting them one by one takes an eighth of the time."""


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

    def alone(*some: FilePair) -> list[Found]:
        return [(pair.row, _compare(roots, pair, 1)) for pair in some]

    elements = np.array([pair.elements for pair in pairs], np.int64)
    load_kernel(2 * (4 * int(elements.sum()) + PAIR * len(pairs)))
    classes = np.searchsorted((ALONE, LARGE), elements, side="right").tolist()
    small, middle, large = (
        [pair for pair, found in zip(pairs, classes, strict=True) if found == one] for one in range(3)
    )
    for start in range(0, len(small), TOGETHER):
        yield alone(*small[start : start + TOGETHER])
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=max(1, threads)))
        stack.callback(pool.shutdown, cancel_futures=True)  # when nobody wants the rest
        yield from pool.map(alone, middle)
    for pair in large:
        yield [(pair.row, _compare(roots, pair, threads))]


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
