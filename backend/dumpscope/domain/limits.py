"""The largest number of each floating-point dtype: where a value stands that was clipped instead of becoming infinite."""

from __future__ import annotations

from typing import Final

import numpy as np

from dumpscope.domain.records import Bool, Float64, State, UInt8

LIMITS: Final = {
    "torch.float8_e4m3fn": 448.0,
    "torch.float8_e4m3fnuz": 240.0,
    "torch.float8_e5m2": 57344.0,
    "torch.float8_e5m2fnuz": 57344.0,
    "torch.float16": 65504.0,
    "torch.bfloat16": 2.0**127 * (2 - 2.0**-7),
    "torch.float32": 2.0**127 * (2 - 2.0**-23),
    "torch.float64": float(np.finfo(np.float64).max),
}
SCALED: Final = frozenset(name for name in LIMITS if "float8" in name)
"""Dtypes whose tensors are scaled so that the largest element meets the limit: there it is usual."""
_ROUNDED: Final = 1e-6
"""Share of a limit by which a number printed with few digits may miss it."""


def limits(dtypes: list[str]) -> Float64:
    """Limit of each dtype, nan where it has none; one more entry for the code -1."""
    return np.array([LIMITS.get(name, np.nan) for name in dtypes] + [np.nan])


def at_limit(stats: Float64, state: UInt8, limit: Float64) -> tuple[Bool, Bool]:
    """Whether Max stands at the largest, and Min at the smallest number of its dtype.

    stats, state: shape (n, 4) as in Items; limit: shape (n,)
    """
    with np.errstate(invalid="ignore"):
        reached = np.abs(np.abs(stats[:, :2]) - limit[:, None]) <= _ROUNDED * limit[:, None]
        reached &= state[:, :2] == State.FINITE
        return reached[:, 0] & (stats[:, 0] > 0), reached[:, 1] & (stats[:, 1] < 0)


def is_limit(value: float) -> bool:
    """A number that a program passes to mean the limit of some dtype, as masks and clamps do."""
    return any(abs(abs(value) - limit) <= _ROUNDED * limit for limit in LIMITS.values())
