"""Minimum, maximum, zeros, sum of squares and checksum of host memory without gaps.

Uses torch's reductions, whose threads are awake during training; numpy counts zeros, if there are any. Works in blocks, so that
all but the first reduction find the numbers in a cache.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import torch

from dumpscope_capture.optional_numpy import np
from dumpscope_capture.values.live_memory import read

if TYPE_CHECKING:
    pass

BLOCK_BYTES: Final = 1 << 22

_WORD: Final = 8
_COLUMNS: Final = 251  # a prime: rows of a matrix that change places change columns here
_TABLE: Final = (32, _COLUMNS)  # words whose columns are added up
_WORDS: Final = _TABLE[0] * _TABLE[1]
_MIXER: Final = 0x1E3779B97F4A7C15
_LINE: Final = 1024  # elements whose squares are summed in their own precision
_SIZES: Final = 64
"""Number of sizes whose views of the room for truths are kept."""

_scratch: Final = threading.local()


def checksum(memory: torch.Tensor, *, thorough: bool) -> tuple[int, ...]:
    """Checksum of the bytes of a one-dimensional tensor without gaps. Any change of a single 8-byte word changes it.

    thorough: swapping words changes it too
    """
    add = _ordered_sum if thorough else _sum
    if not memory.nbytes % _WORD and not memory.storage_offset() * memory.itemsize % _WORD:
        return (add(memory.view(torch.int64)),)
    data = memory.view(torch.uint8)
    start = -data.storage_offset() % _WORD
    end = start + (data.numel() - start) // _WORD * _WORD
    rest = read(data[end:], crc32, read(data[:start], crc32))
    return rest, add(data[start:end].view(torch.int64))


def _sum(words: torch.Tensor) -> int:
    return int(words.sum().item())  # wraps around on purpose


def _ordered_sum(words: torch.Tensor) -> int:
    """Checksum of column sums of small tables, weighted so that swapped tables change the result."""
    whole = words.numel() // _WORDS * _WORDS
    if not whole:
        return read(words, crc32)
    sums = words[:whole].view(-1, *_TABLE).sum(1)
    if np is None:
        weights = (torch.arange(len(sums)) * _MIXER | 1).view(-1, 1)
        return read(words[whole:], crc32, read((sums * weights).sum(0), crc32))
    return read(words[whole:], crc32, read(sums, _check_weighted))


def _check_weighted(data: memoryview) -> int:
    """CRC-32 of the sum of rows, each times its weight; for few numbers numpy is faster than torch."""
    sums = np.frombuffer(data, np.int64).reshape(-1, _COLUMNS)
    return crc32(np.add.reduce(sums * _weights(len(sums))).data)


def _weights(count: int) -> Any:
    """A column of distinct odd numbers."""
    known = getattr(_scratch, "weights", None)
    if known is None or len(known) < count:
        known = _scratch.weights = (np.arange(2 * count) * _MIXER | 1).reshape(-1, 1)
    return known[:count]


class Survey(NamedTuple):
    """Simple facts about numbers.

    low, top: minimum and maximum, NaN if there is a NaN; zeros: count of zeros
    squares: sum of squares of floats: each row in its own precision, the rows in float64
    """

    low: float | int
    top: float | int
    zeros: int
    squares: float | None


def survey(memory: torch.Tensor) -> Survey:
    """Survey of a one-dimensional tensor without gaps, of at least one real number."""
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
    """Sum of squares. Rows are so short that float32 is exact to 1e-7."""
    size = block.numel()
    rest = size % _LINE
    if not rest:
        norms = torch.linalg.vector_norm(block.view(-1, _LINE), dim=1)
        return float(torch.linalg.vector_norm(norms, dtype=torch.float64).item() ** 2)
    last = float(torch.linalg.vector_norm(block[size - rest :], dtype=torch.float64).item() ** 2)
    return last + _squares(block[: size - rest]) if rest < size else last


def _zeros(numbers: torch.Tensor) -> int:
    """Count zeros through a bool tensor, which torch fills on all threads; often all are true, which is checked first."""
    truths, some = _truths(numbers.numel())
    truths.copy_(numbers)
    if some is None:
        return read(truths, _count_false)
    return 0 if np.logical_and.reduce(some) else len(some) - int(np.count_nonzero(some))


def _truths(size: int) -> tuple[torch.Tensor, Any]:
    """A bool tensor of our own to be filled, and the same memory as an array, None without numpy. Few sizes occur often."""
    known: dict[int, tuple[torch.Tensor, Any]] | None = getattr(_scratch, "truths", None)
    if known is None:
        known = _scratch.truths = {}
    found = known.get(size)
    if found is None:
        whole: torch.Tensor | None = getattr(_scratch, "room", None)
        if whole is None or whole.numel() < size or len(known) >= _SIZES:
            known.clear()
            whole = _scratch.room = torch.empty(max(size, 0 if whole is None else whole.numel()), dtype=torch.bool)
        part = whole[:size]
        found = known[size] = part, None if np is None else read(part, _array_of)
    return found


def _array_of(data: memoryview) -> Any:
    return np.frombuffer(data, np.bool_)


def _count_false(data: memoryview) -> int:
    return bytes(data).count(0)


def flat(value: torch.Tensor) -> torch.Tensor | None:
    """All elements in memory order if there are no gaps, else None."""
    if value.is_contiguous():
        return value.view(-1)
    step = 1
    for stride, size in sorted(zip(value.stride(), value.shape)):
        if size > 1 and stride != step:
            return None
        step *= size
    return value.as_strided((value.numel(),), (1,))
