"""Distances between two tensors."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch

MANTISSA: Final = {torch.float16: 10, torch.bfloat16: 7, torch.float32: 23, torch.float64: 52}
LEAST_EXPONENT: Final = {torch.float16: -14, torch.bfloat16: -126, torch.float32: -126, torch.float64: -1022}


@dataclass(frozen=True)
class Measures:
    """Distances over the finite elements.

    peak: largest error divided by the largest magnitude; ulp: largest error in units in the last place of the tensor's own type
    unequal: elements that differ at all; nonfinite: places where NaN or infinity disagree
    """

    elements: int
    unequal: int
    nonfinite: int
    max_abs: float
    max_rel: float
    rel_l2: float
    peak: float
    cosine: float
    ulp: float

    def document(self) -> dict[str, Any]:
        return {key: value if math.isfinite(value) else str(value) for key, value in asdict(self).items()}


def measure(tensor: torch.Tensor, reference: torch.Tensor) -> Measures:
    """Distances of two CPU tensors of the same shape; units in the last place are those of the type of `tensor`."""
    dtype = tensor.dtype
    mine, right = wide(tensor).flatten(), wide(reference).flatten()
    same = alike(mine, right)
    unequal = int((~same).sum())
    finite = torch.isfinite(mine) & torch.isfinite(right)
    nonfinite = int((~finite & ~same).sum())
    mine, right = mine[finite], right[finite]
    if not mine.numel():
        return Measures(
            elements=tensor.numel(), unequal=unequal, nonfinite=nonfinite,
            max_abs=0.0, max_rel=0.0, rel_l2=0.0, peak=0.0, cosine=1.0, ulp=0.0,
        )  # fmt: skip
    error = (mine - right).abs()
    size = right.abs()
    least = torch.finfo(dtype).tiny if dtype.is_floating_point else 0.0
    error = torch.where(error < least, torch.zeros_like(error), error)  # below the smallest normal number
    top, widest = float(size.max()), float(error.max())
    relative = torch.where(error > 0, error / size, error)  # against 0: infinite
    scale = max(top, float(mine.abs().max())) or 1.0  # squares of 1e300 are infinite
    mine, right = mine / scale, right / scale
    spread, length = float((error / scale).norm()), float(right.norm())
    dot = float((mine.conj() * right).sum().real)
    lengths = float(mine.norm()) * length
    return Measures(
        elements=tensor.numel(),
        unequal=unequal,
        nonfinite=nonfinite,
        max_abs=widest,
        max_rel=float(relative.max()),
        rel_l2=_share(spread, length),
        peak=_share(widest, top),
        cosine=dot / lengths if lengths else 1.0 if spread == 0 else 0.0,
        ulp=float(ulps(error, size, dtype).max()) if dtype in MANTISSA else widest,
    )


def alike(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where two tensors of one shape are equal, NaN to NaN."""
    return (one == other) | (torch.isnan(one) & torch.isnan(other))


def wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def ulps(error: torch.Tensor, size: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Errors in units in the last place that numbers of `size` have in `dtype`."""
    exponent = torch.frexp(size)[1].to(torch.float64) - 1
    exponent = torch.where(size == 0, torch.zeros_like(exponent), exponent).clamp(min=LEAST_EXPONENT[dtype])
    return error * torch.exp2(MANTISSA[dtype] - exponent)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0 if part == 0 else math.inf
