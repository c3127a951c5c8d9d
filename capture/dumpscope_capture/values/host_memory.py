"""Numbers of host memory without gaps: least, greatest, zeros and squares, and a checksum of the bytes.

By torch's reductions, on the threads that a training step has awake; numpy counts zeros, where there are any. Piece by piece,
so that all but the first of them find the numbers in a cache.
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
import torch

BLOCK_BYTES: Final = 1 << 22

_WORD: Final = 8
_COLUMNS: Final = 251  # a prime: rows of a matrix that change places change columns here
_TABLE: Final = (32, _COLUMNS)  # words whose columns are added up
_WORDS: Final = _TABLE[0] * _TABLE[1]
_MIXER: Final = 0x1E3779B97F4A7C15
_LINE: Final = 1024  # elements whose squares are summed in their own precision
_scratch: Final = threading.local()

Array = np.ndarray[Any, np.dtype[Any]]


def checksum(memory: torch.Tensor, *, thorough: bool) -> tuple[int, ...]:
    """Of the bytes of a tensor in one dimension without gaps. Any change of one of its 8-byte words changes it.

    thorough: words that change places change it too; else only a change of what is there
    """
    add = _ordered if thorough else _sum
    if not memory.nbytes % _WORD and not memory.storage_offset() * memory.itemsize % _WORD:
        return (add(memory.view(torch.int64)),)
    data = memory.view(torch.uint8)
    start = -data.storage_offset() % _WORD
    end = start + (data.numel() - start) // _WORD * _WORD
    rest = crc32(data[end:].numpy().data, crc32(data[:start].numpy().data))
    return rest, add(data[start:end].view(torch.int64))


def _sum(words: torch.Tensor) -> int:
    return int(words.sum().item())  # wraps, as it should


def _ordered(words: torch.Tensor) -> int:
    """From sums of short columns, added up with weights so that tables that change places change the result."""
    whole = words.numel() // _WORDS * _WORDS
    if not whole:
        return crc32(words.numpy().data)
    sums = words[:whole].view(-1, *_TABLE).sum(1).numpy()
    sums *= _weights(len(sums))
    return crc32(words[whole:].numpy().data, crc32(np.add.reduce(sums).data))


def _weights(count: int) -> Array:
    """A column of different odd numbers."""
    known: Array | None = getattr(_scratch, "weights", None)
    if known is None or len(known) < count:
        known = _scratch.weights = (np.arange(2 * count) * _MIXER | 1).reshape(-1, 1)
    return known[:count]


class Survey(NamedTuple):
    """What numbers are like.

    low, top: least and greatest, NaN where one is; zeros: how many are 0
    squares: sum of the squares of floats, of rows in their own precision and of the rows in float64
    """

    low: float | int
    top: float | int
    zeros: int
    squares: float | None


def survey(memory: torch.Tensor) -> Survey:
    """Of at least one real number, in one dimension without gaps."""
    size = BLOCK_BYTES // memory.itemsize
    numel = memory.numel()
    if numel <= size:
        return _survey(memory)
    parts = [_survey(memory[start : start + size]) for start in range(0, numel, size)]
    odd = next((part.low for part in parts if part.low != part.low), None)
    return Survey(
        min(part.low for part in parts) if odd is None else odd,
        max(part.top for part in parts) if odd is None else odd,
        sum(part.zeros for part in parts),
        None if parts[0].squares is None else sum(part.squares or 0.0 for part in parts),
    )


def _survey(block: torch.Tensor) -> Survey:
    low, top = block.amin().item(), block.amax().item()
    zeros = 0 if low > 0 or top < 0 else _zeros(block)
    return Survey(low, top, zeros, _squares(block) if block.is_floating_point() else None)


def _squares(block: torch.Tensor) -> float:
    """Rows are short enough for float32 to be exact to 1e-7."""
    size = block.numel()
    rest = size % _LINE
    if not rest:
        norms = torch.linalg.vector_norm(block.view(-1, _LINE), dim=1)
        return float(torch.linalg.vector_norm(norms, dtype=torch.float64).item() ** 2)
    last = float(torch.linalg.vector_norm(block[size - rest :], dtype=torch.float64).item() ** 2)
    return last + _squares(block[: size - rest]) if rest < size else last


def _zeros(numbers: torch.Tensor) -> int:
    """By way of truth values, which torch makes on all threads; mostly all of them are true, and that is seen at once."""
    size = numbers.numel()
    truths: torch.Tensor | None = getattr(_scratch, "truths", None)
    if truths is None or truths.numel() < size:
        truths = _scratch.truths = torch.empty(size, dtype=torch.bool)
    some = truths[:size].copy_(numbers).numpy()
    return 0 if some.all() else size - int(np.count_nonzero(some))


def flat(value: torch.Tensor) -> torch.Tensor | None:
    """All elements in the order of memory where they lie there without gaps, else None."""
    if value.is_contiguous():
        return value.view(-1)
    step = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size > 1 and stride != step:
            return None
        step *= size
    return value.as_strided((value.numel(),), (1,))
