"""The columns of msprobe's details table for one result, and the verdict by msprobe's thresholds.

Differences: NaN and infinities at the same places are equal, and complex numbers are compared; both are errors in msprobe.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from dumpscope_capture.replay.judging import ERROR, PASS, SKIP, WARNING
from dumpscope_capture.replay.measures import MANTISSA, alike, ulps, wide

COSINE: Final = 0.99
SMALL_ERROR: Final = 1e-3
HUNDREDTH, THOUSANDTH, TEN_THOUSANDTH = 1e-2, 1e-3, 1e-4
HALVES: Final = (torch.float16, torch.bfloat16)
SMALL_VALUE: Final = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-10}
SMALL_ATOL: Final = {torch.float16: 1e-16, torch.bfloat16: 1e-16}
RTOL: Final = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-8}
EPS: Final = {torch.float16: 2.0**-23, torch.bfloat16: 2.0**-8}
ULP_LIMIT: Final = {torch.float16: 1.0, torch.bfloat16: 1.0}


def columns(tensor: torch.Tensor, bench: torch.Tensor, *, random: bool) -> dict[str, Any]:
    """Values by column, None where one does not apply; `status` and `message` among them. Both tensors on the CPU."""
    made: dict[str, Any] = {
        "bench_dtype": str(bench.dtype),
        "device_dtype": str(tensor.dtype),
        "shape": str(tuple(tensor.shape)),
    }
    if tensor.shape != bench.shape:
        return {**made, "status": ERROR, "message": f"shapes differ: the reference has {tuple(bench.shape)}"}
    if not tensor.numel():
        return {**made, "status": SKIP, "message": "empty"}
    if random:
        few = tensor.numel() < 100
        zeros, others = (float((one == 0).double().mean()) for one in (tensor, bench))
        said = "random, too few elements" if few else f"{zeros:.3f} and {others:.3f} zeros"
        return {**made, "status": PASS if few or abs(zeros - others) < 0.1 else ERROR, "message": said}
    if not (tensor.is_floating_point() or tensor.is_complex()):
        unequal = float((~alike(wide(tensor), wide(bench))).double().mean())
        return {**made, "unequal": unequal, "status": ERROR if unequal else PASS, "message": "compared bit by bit"}
    return {**made, **_floats(tensor, bench)}


def _floats(tensor: torch.Tensor, bench: torch.Tensor) -> dict[str, Any]:
    dtype = tensor.dtype
    mine, right = wide(tensor).flatten(), wide(bench).flatten()
    same = alike(mine, right)
    finite = torch.isfinite(mine) & torch.isfinite(right)
    odd = float((~finite & ~same).double().mean())
    error = torch.where(finite, (mine - right).abs(), torch.where(same, 0.0, torch.inf))
    size = torch.where(finite, right.abs(), 1.0)
    relative = error / (size + EPS.get(dtype, torch.finfo(torch.float64).eps))
    small = finite & (size < SMALL_VALUE.get(dtype, 2.0**-20))
    normal = finite & ~small
    least = SMALL_ATOL.get(dtype, 2.0**-30)
    count = mine.numel()
    signed = (mine - right).real
    above, below = int((finite & (signed > 0)).sum()), int((finite & (signed < 0)).sum())
    squared = torch.where(normal, error, 0.0).square().mean()
    found = {
        "cosine": _cosine(mine[finite], right[finite]),
        "max_abs": float(error.max()),
        "hundredth": float((relative < HUNDREDTH).double().mean()),
        "thousandth": float((relative < THOUSANDTH).double().mean()),
        "ten_thousandth": float((relative < TEN_THOUSANDTH).double().mean()),
        "balance": abs(above - below) / count,
        "rmse": float((squared * (count / (count - int((~finite).sum()) + 1e-4) + 1e-4)).sqrt()),
        "small_share": float((error[small] > least).double().mean()) if bool(small.any()) else 0.0,
        "max_rel": float(relative[normal].max()) if bool(normal.any()) else 0.0,
        "mean_rel": float(relative[normal].mean()) if bool(normal.any()) else 0.0,
        "nonfinite": odd,
        "rel_share": float((relative[normal] > RTOL.get(dtype, 2.0**-20)).double().mean())
        if bool(normal.any())
        else 0.0,
        "abs_share": float((error[small] > least).double().mean()) if bool(small.any()) else 0.0,
    }
    if dtype in MANTISSA and bool(finite.any()):
        units = ulps(error[finite], size[finite], dtype)
        found["ulp_max"], found["ulp_mean"] = float(units.max()), float(units.mean())
        found["ulp_share"] = float((units > ULP_LIMIT.get(dtype, 32.0)).double().mean())
    status, said = verdict(found, half=dtype in HALVES)
    return {**found, "status": status, "message": said}


def verdict(found: dict[str, float], *, half: bool) -> tuple[str, str]:
    """Stage one: cosine, then a small largest error, then how many elements are close."""
    if found["cosine"] <= COSINE:
        return ERROR, f"cosine not above {COSINE}"
    if found["max_abs"] < SMALL_ERROR:
        return PASS, f"largest error below {SMALL_ERROR}"
    coarse, fine = ("hundredth", "thousandth") if half else ("thousandth", "ten_thousandth")
    enough, plenty = (0.99, 0.999) if half else (0.999, 0.9999)
    if found[coarse] <= enough:
        return ERROR, f"too few elements within a {coarse}"
    if found[fine] <= plenty:
        return WARNING, f"too few elements within a {fine}"
    return PASS, ""


def _cosine(mine: torch.Tensor, right: torch.Tensor) -> float:
    """1 of two zeros, 0 of one."""
    scale = max((float(one.abs().max()) for one in (mine, right) if one.numel()), default=0.0) or 1.0
    mine, right = mine / scale, right / scale
    lengths = float(mine.norm()), float(right.norm())
    if not lengths[0] or not lengths[1]:
        return float(lengths[0] == lengths[1])
    return float((mine.conj() * right).sum().real) / (lengths[0] * lengths[1])
