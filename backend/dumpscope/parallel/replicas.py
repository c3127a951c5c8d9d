"""Copies of one tensor on several ranks: are they equal, and if not, which one deviates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dumpscope.domain.records import Bool, Float64, State, UInt8

_COARSE: Final = {"torch.float16": 1e-3, "torch.bfloat16": 8e-3}
_FINE: Final = 1e-5
_CLEAR: Final = 0.1
"""Of two copies the one farther from the other side is odd, if it is at least this many times as far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """Copies that differ at an item. members: those that deviate, empty if unknown"""

    item: int
    members: tuple[int, ...]


def tolerance(dtype: str) -> float:
    """Allowed difference between the statistics of copies, as a share of the tensor's magnitude (sums in another order)."""
    return 0.0 if "int" in dtype or "bool" in dtype else _COARSE.get(dtype, _FINE)


def agree(stats: Float64, states: UInt8, allowed: Float64) -> Bool:
    """Whether the copies of each item have the same statistics. stats, states: (members, items, 4); allowed: (items,)"""
    known = states == State.FINITE
    same_state = (states == states[:1]).all(axis=(0, 2))
    values = np.where(known, stats, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        span = np.abs(values[:, :, :2]).max(axis=(0, 2))
        norm = np.abs(values[:, :, 3]).max(axis=0)
        spread = values.max(axis=0) - values.min(axis=0)
        near = (spread[:, :3] <= (allowed * span)[:, None]).all(axis=1) & (spread[:, 3] <= allowed * norm)
    found: Bool = same_state & near
    return found


def odd_members(
    stats: Float64, states: UInt8, hashes: NDArray[Any], allowed: float, rival: tuple[Float64, UInt8] | None
) -> tuple[int, ...]:
    """Members whose copy of one item differs: those outside the majority, else the ones far from the other side.

    stats, states: (members, 4); hashes: (members,) codes; rival: statistics and states of the other side's partner
    """
    count = len(stats)
    hashed = bool((hashes >= 0).all())

    def alike(a: int, b: int) -> bool:
        if hashed and hashes[a] != hashes[b]:
            return False
        pair = [a, b]
        return bool(agree(stats[pair][:, None], states[pair][:, None], np.array([allowed]))[0])

    groups: list[list[int]] = []
    for member in range(count):
        home = next((group for group in groups if alike(group[0], member)), None)
        if home is None:
            groups.append([member])
        else:
            home.append(member)
    largest = max(groups, key=len)
    if 2 * len(largest) > count:
        return tuple(member for member in range(count) if member not in largest)
    if rival is None:
        return ()
    far = np.array([distance(stats[member], states[member], *rival) for member in range(count)])
    nearest = far.min()
    limit = max(nearest / _CLEAR, 2 * allowed)
    strays = tuple(np.flatnonzero(far > limit).tolist())
    return strays if len(strays) < count else ()


def distance(stats: Float64, states: UInt8, other: Float64, other_states: UInt8) -> float:
    """Distance between two sets of four statistics, as a share of the magnitude; inf if only one is finite."""
    both = (states == State.FINITE) & (other_states == State.FINITE)
    if (states != other_states).any():
        return float("inf")
    if not both.any():
        return 0.0
    scale = max(float(np.abs(stats[both]).max()), float(np.abs(other[both]).max()), 1e-300)
    return float(np.abs(stats[both] - other[both]).max()) / scale
