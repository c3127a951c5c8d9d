"""The arguments of a call, from its document: tensors from files or made up, scalars, slices, dtypes."""

from __future__ import annotations

import math
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

_WIDEST: Final = 16
"""Bytes of the widest element."""

PLAIN_FORMAT: Final = 2
"""Number of the plain storage format on an NPU, ND."""

NUMBERS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Case:
    """How a call is run.

    dtype: "recorded" or a floating type; layout: "recorded" or "contiguous"; storage: format on an NPU, "recorded" or "nd"
    """

    device: str = "cpu"
    dtype: str = "recorded"
    layout: str = "recorded"
    storage: str = "recorded"
    deterministic: bool = False
    seed: int = 1234


def number(value: Any, default: float = 0.0) -> float:
    """A number of a document, where NaN and infinities are texts."""
    return default if value is None else NUMBERS[value] if isinstance(value, str) else float(value)


def tensor_specs(value: Any) -> Iterator[dict[str, Any]]:
    """Every tensor below a value, in order."""
    if isinstance(value, dict):
        if "tensor" in value:
            yield value
        else:
            for part in value.values():
                yield from tensor_specs(part)
    elif isinstance(value, list):
        for part in value:
            yield from tensor_specs(part)


class Tensors:
    """Tensors of one call as recorded, on the CPU. They are read once; every run takes copies.

    made_up: items without a file; their numbers are random between the recorded extremes
    """

    def __init__(self, folder: str | None, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.made_up: list[str] = []
        self._read: dict[str, torch.Tensor] = {}

    def __call__(self, spec: dict[str, Any]) -> torch.Tensor:
        item = str(spec["tensor"])
        found = self._read.get(item)
        if found is None:
            found = self.from_file(spec)
            if found is None:
                found = make_up(spec, self.seed)
                if found.numel():
                    self.made_up.append(item)
            self._read[item] = found
        return found

    def from_file(self, spec: dict[str, Any]) -> torch.Tensor | None:
        """The recorded tensor, None if its file is missing."""
        path = self.path(spec)
        if path is None:
            return None
        return view_of(self.storage(spec), spec) if "total" in spec else load(path)

    def storage(self, spec: dict[str, Any]) -> torch.Tensor:
        """A copy of the bytes of a tensor's storage in its original size, rounded up to whole elements."""
        path = self.path(spec)
        assert path is not None
        held = load(path)
        whole = torch.zeros(-(-int(spec["total"]) // _WIDEST) * _WIDEST, dtype=torch.uint8)
        whole[int(spec["start"]) : int(spec["start"]) + held.numel()] = held
        return whole

    def path(self, spec: dict[str, Any]) -> str | None:
        """Path of a tensor's file, None if it is missing."""
        name = spec.get("file")
        if not name:
            return None
        path = name if os.path.isabs(name) else os.path.join(self.folder or "", name)
        return path if os.path.isfile(path) else None


def load(path: str) -> torch.Tensor:
    """A tensor file of torch.save or numpy.save, on the CPU."""
    if path.endswith(".npy"):
        import numpy as np  # noqa: PLC0415 - only such a file needs it

        return torch.from_numpy(np.load(path, allow_pickle=False))
    found = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(found, torch.Tensor):
        raise TypeError(f"{path} holds a {type(found).__name__}, not a tensor")
    return found.detach()


def view_of(storage: torch.Tensor, spec: dict[str, Any]) -> torch.Tensor:
    """The tensor as a view of its storage, given as bytes."""
    elements = storage.view(getattr(torch, spec["dtype"]))
    return elements.as_strided(spec["shape"], spec["stride"], spec["offset"]).detach()


def make_up(spec: dict[str, Any], seed: int) -> torch.Tensor:
    """A random tensor of the recorded type and shape, between the recorded minimum and maximum; repeatable by its seed."""
    shape, dtype = tuple(spec["shape"]), getattr(torch, spec["dtype"])
    count = math.prod(shape)
    source = torch.Generator().manual_seed(seed ^ zlib.crc32(str(spec["tensor"]).encode()))
    least, most = number(spec.get("min"), math.nan), number(spec.get("max"), math.nan)
    if not count:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool:
        drawn = torch.rand(count, generator=source) < 0.5
        flat = drawn if least != most else torch.full((count,), bool(most))
    elif not dtype.is_floating_point and not dtype.is_complex:
        flat = _integers(count, spec.get("min"), spec.get("max"), dtype, source)
    else:
        flat = _reals(count, least, most, spec.get("counts") or {}, known="max" in spec, source=source)
        if dtype.is_complex:
            turn = torch.rand(count, generator=source, dtype=torch.float64) * 2 * math.pi
            flat = torch.polar(flat.abs(), turn)
    return flat.to(dtype).reshape(shape)


def _integers(count: int, least: Any, most: Any, dtype: torch.dtype, source: torch.Generator) -> torch.Tensor:
    low, high = int(least or 0), int(most if most is not None else 1)
    span = min(high - low + 1, 2**63 - 1)
    flat = torch.randint(span, (count,), generator=source, dtype=torch.int64) + low
    flat[0], flat[-1] = low, high
    return flat


def _reals(
    count: int, least: float, most: float, counts: dict[str, int], *, known: bool, source: torch.Generator
) -> torch.Tensor:
    """float64 numbers: the extremes are first and last; NaN and infinities are at random places."""
    share = torch.rand(count, generator=source, dtype=torch.float64)
    if not known:
        return share * 2 - 1
    low = least if math.isfinite(least) else min(most, 0.0) if math.isfinite(most) else -1.0
    high = most if math.isfinite(most) else max(low, 0.0) if math.isfinite(least) else 1.0
    flat = low * (1 - share) + high * share
    flat[0], flat[-1] = low, high
    marks = [math.nan] * counts.get("nan", count if math.isnan(most) else 0)
    marks += [math.inf] * counts.get("inf", int(most == math.inf))
    marks += [-math.inf] * counts.get("-inf", int(least == -math.inf))
    if marks:
        marks = marks[:count]
        places = torch.randperm(count, generator=source)[: len(marks)]
        flat[places] = torch.tensor(marks, dtype=torch.float64)
    return flat


def lay_out(tensor: torch.Tensor, spec: dict[str, Any], layout: str) -> torch.Tensor:
    """A copy with the recorded strides and offset, or in row-major order."""
    if "layout" in spec:  # its file has the zeros, too
        return tensor.to_sparse(layout=getattr(torch, spec["layout"]))
    stride = spec.get("stride")
    if layout == "contiguous" or stride is None or len(stride) != tensor.dim():
        return tensor.contiguous().clone()
    offset = int(spec.get("offset") or 0)
    steps = zip(tensor.shape, stride)
    room = offset + 1 + sum((size - 1) * step for size, step in steps) if tensor.numel() else offset
    placed = torch.empty(room, dtype=tensor.dtype, device=tensor.device).as_strided(tensor.shape, stride, offset)
    once = placed
    for dim, step in enumerate(stride):
        if step == 0 and tensor.shape[dim] > 1:  # an expanded dimension is written once
            tensor, once = tensor.narrow(dim, 0, 1), once.narrow(dim, 0, 1)
    once.copy_(tensor)
    return placed


def lies_otherwise(spec: dict[str, Any]) -> bool:
    """Whether a tensor was not row-major from the beginning of its storage."""
    stride = spec.get("stride")
    if stride is None:
        return False
    step, plain = 1, True
    for size, given in zip(reversed(spec["shape"]), reversed(stride)):
        plain = plain and (size == 1 or given == step)
        step *= size
    return not plain or bool(spec.get("offset"))


def in_format(tensor: torch.Tensor, spec: dict[str, Any], storage: str) -> torch.Tensor:
    """The tensor in its recorded NPU storage format, or in the plain one; unchanged on other devices."""
    npu: Any = sys.modules.get("torch_npu")
    if npu is None or tensor.device.type != "npu" or spec.get("format") is None:
        return tensor
    wanted = int(spec["format"]) if storage == "recorded" else PLAIN_FORMAT
    return tensor if npu.get_npu_format(tensor) == wanted else npu.npu_format_cast(tensor, wanted)


def rebuild(value: Any, tensor: Callable[[dict[str, Any]], Any], case: Case, *, dtype: Any = None) -> Any:
    """The Python object for a value. tensor: makes its tensors; dtype: maps a dtype among the arguments."""
    if isinstance(value, list):
        return [rebuild(part, tensor, case, dtype=dtype) for part in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensor(value)
    (key, held), *_ = value.items()
    if key in ("tuple", "dict"):
        inner = held.items() if key == "dict" else enumerate(held)
        parts = {name: rebuild(part, tensor, case, dtype=dtype) for name, part in inner}
        return parts if key == "dict" else tuple(parts.values())
    plain: dict[str, Callable[[], Any]] = {
        "float": lambda: NUMBERS[held],
        "complex": lambda: complex(*held),
        "dtype": lambda: (dtype or (lambda one: one))(getattr(torch, held)),
        "device": lambda: torch.device(case.device),
        "slice": lambda: slice(*(rebuild(part, tensor, case) for part in held)),
        "ellipsis": lambda: ...,
        "size": lambda: torch.Size(held),
        "memory_format": lambda: getattr(torch, held),
        "layout": lambda: getattr(torch, held),
    }
    return plain[key]()
