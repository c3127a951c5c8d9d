"""Histograms of errors: decades of absolute and relative error, and fine bins of ULP distance.

Bins are exact (an error on an edge belongs to the decade above it) and the same for every kernel.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.facts import ERROR_BINS
from dumpscope.domain.records import Float64, Int64

Errors = NDArray[np.float32] | NDArray[np.float64]

EDGES: Final[Float64] = np.array([float(f"1e{power}") for power in ERROR_BINS])
"""Left edges of the decades as numbers."""

COARSE_EDGES: Final = (EDGES.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
"""The same for errors of float32: cut to the upper half of their patterns, up to 0.8 % lower, so that half the bits decide."""

DECADE_BINS: Final = len(EDGES) + 2
"""Zero, below the first edge, then one bin per edge."""

ULP_SHIFT: Final = 18
ULP_BASE: Final = (0x3F800000 >> ULP_SHIFT) - 1
ULP_BINS: Final = ((191 << 23) >> ULP_SHIFT) - ULP_BASE + 1
"""A distance is converted to float32, and the upper 14 bits of its pattern are the bin: each distance below 64 has its own
bin, larger ones share a bin with those at most 1/32 away. 2**64 is the last bin."""

SAMPLED_FROM: Final = 1 << 16
"""Elements from which the ULP histogram counts one position of every STRIDE; the largest distance always uses all positions."""

STRIDE: Final = 32
SAMPLE: Final = np.array([STRIDE * group + (group * (5 * group + 3) // 4) % STRIDE for group in range(128)])
"""Sampled positions of 4096 consecutive ones: one of each STRIDE, at a varying offset, so that no stride in the data matters."""


def count_decades(errors: Errors, counts: Int64) -> None:
    """Add the decades of non-negative, not-nan `errors` (shape (n,)) to `counts` (shape (DECADE_BINS,)).

    Float32 errors are compared with COARSE_EDGES.
    """
    edges = COARSE_EDGES if errors.dtype == np.float32 else EDGES
    largest = errors.max()
    nonzero = int(np.count_nonzero(errors))
    counts[0] += errors.size - nonzero
    if nonzero == 0:
        return
    smallest = errors.min() if nonzero == errors.size else errors[errors > 0].min()
    first, last = np.searchsorted(edges, np.array((smallest, largest), dtype=errors.dtype), side="right")
    above = nonzero
    for edge in range(first, last):
        reached = int(np.count_nonzero(errors >= edges[edge]))
        counts[edge + 1] += above - reached
        above = reached
    counts[last + 1] += above


def count_ulps(distances: NDArray[np.unsignedinteger[Any]], counts: Int64) -> None:
    """Add ULP distances (shape (n,), unsigned) to `counts` (shape (ULP_BINS,))."""
    patterns = distances.astype(np.float32).view(np.uint32) >> ULP_SHIFT
    bins = np.maximum(patterns, ULP_BASE) - np.uint32(ULP_BASE)
    found = np.bincount(bins)
    counts[: found.size] += found


def _values() -> list[float]:
    """The distance that each bin stands for: itself below 64, else the middle of the bin."""
    edges = (np.arange(1, ULP_BINS + 1, dtype=np.uint32) + np.uint32(ULP_BASE)) << np.uint32(ULP_SHIFT)
    low, high = edges[:-1].view(np.float32).astype(np.float64), edges[1:].view(np.float32).astype(np.float64)
    return [0.0, *np.where(low < 64, low, (low + high) / 2).tolist()]


STEPS: Final = _values()
"""The distance that each bin of an ULP histogram stands for."""


def median_ulp(counts: Int64) -> float | None:
    """Lower median of the counted distances: exact below 64, else the middle of its bin (within 1.6 %); None if none counted."""
    reached = counts.cumsum()
    total = int(reached[-1])
    return STEPS[reached.searchsorted((total + 1) // 2)] if total else None
