"""The metrics once more, element by element in exact rational arithmetic: slow, plain, and shared by no line with the product."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

Number = int | float | complex


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def scalars(array: np.ndarray[Any, Any]) -> list[Number]:
    if array.dtype.kind == "c":
        return [complex(value) for value in array.reshape(-1)]
    convert = float if is_float(array.dtype) else int
    return [convert(value) for value in array.reshape(-1)]


def parts(value: Number) -> list[int | float]:
    return [value.real, value.imag] if isinstance(value, complex) else [value]


def finite(value: Number) -> bool:
    return all(math.isfinite(part) for part in parts(value))


def sides(one: Number, other: Number) -> zip[tuple[int | float, int | float]]:
    first, second = parts(one), parts(other)
    width = max(len(first), len(second))
    return zip(first + [0] * (width - len(first)), second + [0] * (width - len(second)), strict=True)


def equal(one: int | float, other: int | float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def same(one: Number, other: Number) -> bool:
    return all(equal(a, b) for a, b in sides(one, other))


def disagree(one: Number, other: Number) -> bool:
    return any(not (math.isfinite(a) and math.isfinite(b)) and not equal(a, b) for a, b in sides(one, other))


def exact(value: Number) -> list[Fraction]:
    first = [Fraction(part) for part in parts(value)]
    return first + [Fraction(0)] * (2 - len(first))


def root(square: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()


def quotient(top: Decimal, bottom: Decimal) -> float:
    with localcontext() as context:
        context.prec = 60
        return float(top / bottom)


def epsilon(*dtypes: np.dtype[Any]) -> float:
    """The step at 1 of the type numpy would compute the relative error in: float64 where a side has more than 16 bits and is
    no float32, else float32."""
    for dtype in dtypes:
        name = dtype.name
        if name in ("float64", "complex128", "bool") or (dtype.kind in "iu" and dtype.itemsize >= 4):
            return 2.0**-52
    return 2.0**-23


_LAYOUT = {"float16": (16, 10), "bfloat16": (16, 7), "float32": (32, 23), "float64": (64, 52)}


def place(value: float, dtype: np.dtype[Any]) -> int:
    """Rank of a finite value among those of its dtype, zero being 0."""
    if dtype.itemsize == 1:
        codes = {float(code) for code in np.arange(256, dtype=np.uint8).view(dtype)}
        ordered = sorted(code for code in codes if not math.isnan(code))
        return ordered.index(value) - ordered.index(0.0) if 0.0 in ordered else ordered.index(value)
    bits, _ = _LAYOUT[dtype.name]
    code = int.from_bytes(np.array(abs(value), dtype=dtype).tobytes(), "little")
    assert code < 1 << (bits - 1)
    return -code if value < 0 else code


def coarser(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    def fineness(dtype: np.dtype[Any]) -> tuple[int, int]:
        info = ml_dtypes.finfo(dtype)
        return int(info.nmant), int(info.maxexp)

    return one if fineness(one) <= fineness(other) else other


def decade(error: Decimal | float, lowered: float = 0.0) -> int:
    """Bin number in a stored histogram; lowered: share by which the edges are lowered."""
    if error == 0:
        return 0
    for index, power in enumerate(range(4, -17, -1)):
        if float(error) >= float(f"1e{power}") * (1 - lowered):
            return 22 - index
    return 1


def measure(target: np.ndarray[Any, Any], golden: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Every field of TensorFacts but the worst element and the histograms; `ulps` is the sorted list of distances."""
    first, second = scalars(target), scalars(golden)
    dtypes = target.dtype, golden.dtype
    usable = [(a, b) for a, b in zip(first, second, strict=True) if finite(a) and finite(b)]
    differing = sum(disagree(a, b) for a, b in zip(first, second, strict=True))
    agreeing = len(first) - len(usable) - differing
    eps = Fraction(epsilon(target.dtype, golden.dtype))
    products = targets = goldens = deltas = Fraction(0)
    errors: list[Decimal] = []
    ratios: list[float] = []
    for a, b in usable:
        x, y = exact(a), exact(b)
        products += sum(p * q for p, q in zip(x, y, strict=True))
        targets += sum(p * p for p in x)
        length = sum(q * q for q in y)
        goldens += length
        delta = sum((p - q) ** 2 for p, q in zip(x, y, strict=True))
        deltas += delta
        errors.append(root(Fraction(delta)))
        ratios.append(quotient(root(Fraction(delta)), root(Fraction(length) if length else eps * eps)))
    some = bool(first) and len(first) > differing
    several = some and len(first) > 1
    cosine: float | None = None
    if several and (deltas == 0 or (targets == 0 and goldens == 0)):
        cosine = 1.0
    elif several and targets and goldens:
        with localcontext() as context:
            context.prec = 60
            cosine = float(Decimal(products.numerator) / Decimal(products.denominator) / root(targets) / root(goldens))
    ulps: list[int] | None = None
    if usable and is_float(target.dtype) and is_float(golden.dtype):
        unit = coarser(target.dtype, golden.dtype)
        with np.errstate(all="ignore"):
            rounded = [
                [
                    side if dtype == unit else float(np.array(side).astype(unit))
                    for side, dtype in zip(pair, dtypes, strict=True)
                ]
                for pair in usable
            ]
        steps_in_common = "e8m0" not in unit.name or dtypes[0] == dtypes[1]  # that type has no sign
        if steps_in_common and all(math.isfinite(side) for pair in rounded for side in pair):
            ulps = sorted(abs(place(a, unit) - place(b, unit)) for a, b in rounded)
    compared = len(usable) + agreeing
    return {
        "elements": len(first),
        "unequal": sum(not same(a, b) for a, b in zip(first, second, strict=True)),
        "nonfinite_target": sum(not finite(a) for a in first),
        "nonfinite_golden": sum(not finite(b) for b in second),
        "nonfinite_disagree": differing,
        "cosine": cosine,
        "euclidean": float(root(deltas)) if several else None,
        "max_abs": float(max(errors, default=Decimal(0))) if some else None,
        "max_rel": max(ratios, default=0.0) if some else None,
        "ratio_1e3": (sum(r < 0.001 for r in ratios) + agreeing) / compared if several else None,
        "ratio_5e3": (sum(r < 0.005 for r in ratios) + agreeing) / compared if several else None,
        "rel_l2": None
        if not some
        else quotient(root(deltas), root(goldens))
        if goldens
        else (math.inf if deltas else 0.0),
        "ulps": ulps,
        "abs_histogram": np.bincount([decade(e) for e in errors], minlength=23).tolist(),
        "rel_histogram": np.bincount([decade(r) for r in ratios], minlength=23).tolist(),
        "abs_lowered": np.bincount([decade(e, 0.008) for e in errors], minlength=23).tolist(),
        "rel_lowered": np.bincount([decade(r, 0.008) for r in ratios], minlength=23).tolist(),
    }
