"""numpy where it is. An environment for training may lack it, or have one that its torch cannot use."""

from __future__ import annotations

from typing import Any, Final

import torch

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

np: Final[Any] = numpy
"""The module, None where there is none."""

ARRAYS: Final[Any] = (numpy.ndarray,) if np is not None else ()
NUMBERS: Final[Any] = (numpy.generic,) if np is not None else ()
"""Classes for `isinstance`; without numpy nothing is of them."""


def tensor_of(array: Any) -> torch.Tensor:
    """A copy of an array as a tensor. Raises TypeError where torch has no such numbers."""
    copy = np.ascontiguousarray(array).reshape(array.shape).copy()
    try:
        return torch.from_numpy(copy)
    except RuntimeError:  # torch was built for another numpy
        kind = getattr(torch, array.dtype.name, None)
        if not isinstance(kind, torch.dtype):
            raise TypeError(f"torch has no {array.dtype}") from None
        return (
            torch.frombuffer(copy, dtype=kind).clone().view(array.shape)
            if copy.size
            else torch.empty(array.shape, dtype=kind)
        )


def zero_bytes(count: int) -> torch.Tensor:
    """One-dimensional uint8 zeros. numpy takes memory only where it is written to."""
    try:
        return torch.from_numpy(np.zeros(count, np.uint8))
    except (AttributeError, RuntimeError):  # there is no numpy, or torch was built for another
        return torch.zeros(count, dtype=torch.uint8)
