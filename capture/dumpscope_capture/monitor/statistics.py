"""Statistics of many tensors in few operations, left on their device.

Tensors of up to 4096 numbers are copied into the rows of one buffer, where each statistic is one operation for all of them.
Larger ones are measured one by one, as the operations then cost more than their start. Nothing here waits for an accelerator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

SMALL: Final = 4096
_WIDTHS: Final = (16, 128, 1024, SMALL)
_PIECE: Final = 65536
"""Numbers of a large tensor on the CPU that are counted at once: they stay in the cache."""
_ROW: Final = 1024
_NO_DOUBLE: Final = frozenset(("mps", "npu", "xpu"))
_WIDE: Final = frozenset((torch.float32, torch.float64))


def _takes_dtype() -> bool:
    try:
        torch._foreach_norm([torch.zeros(1, dtype=torch.bfloat16)], 2, torch.float32)
    except (TypeError, RuntimeError):  # before torch 2.4
        return False
    return True


_FOREACH_DTYPE: Final = _takes_dtype()


class Meters:
    """Measures lists of named tensors; what a list needs is made once and used again.

    statistics: which ones, of dumpscope_format.monitor.STATISTICS; eps: numbers below it count as zeros
    """

    def __init__(self, statistics: Sequence[str], eps: float) -> None:
        self.statistics = tuple(statistics)
        self.eps = eps
        self._known: dict[Any, list[_Part]] = {}

    def measure(self, named: Sequence[tuple[str, torch.Tensor]]) -> list[tuple[tuple[str, ...], torch.Tensor]]:
        """Names and, for each name, its statistics in order: float32, flat, one tensor for each device.

        named: plain dense tensors of floating-point numbers, none of them empty
        """
        if not self.statistics or not named:
            return []
        key = tuple((name, tensor.shape, tensor.dtype, tensor.device) for name, tensor in named)
        parts = self._known.get(key)
        if parts is None:
            if len(self._known) >= 64:  # shapes that change from step to step
                self._known.clear()
            parts = self._known[key] = _plan(named, self.statistics, self.eps)
        tensors = [tensor for _, tensor in named]
        by_device: dict[torch.device, tuple[list[str], list[torch.Tensor]]] = {}
        for part in parts:
            names, values = by_device.setdefault(part.device, ([], []))
            names += part.names
            values.append(part.measure([tensors[place] for place in part.places]))
        return [
            (tuple(names), values[0].flatten() if len(values) == 1 else torch.cat(values).flatten())
            for names, values in by_device.values()
        ]


def norms(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Norms of tensors of one device, as float32 or float64."""
    device = tensors[0].device
    if device.type == "cpu":
        return torch.tensor([_norm_on_cpu(tensor.reshape(-1)) for tensor in tensors], dtype=torch.float64)
    if all(tensor.dtype in _WIDE for tensor in tensors):
        found = list(torch._foreach_norm(list(tensors), 2))
    elif _FOREACH_DTYPE:
        found = list(torch._foreach_norm(list(tensors), 2, torch.float32))
    else:
        found = [torch.linalg.vector_norm(tensor, dtype=_wide(tensor.dtype)) for tensor in tensors]
    return torch.stack([one.to(torch.float32) for one in found] if len({one.dtype for one in found}) > 1 else found)


class _Part:
    """Tensors of one list that are measured together. places: their places in the list; names: theirs"""

    def __init__(
        self, named: Sequence[tuple[str, torch.Tensor]], places: list[int], statistics: tuple[str, ...], eps: float
    ) -> None:
        self.places = places
        self.names = [named[place][0] for place in places]
        self.statistics = statistics
        self.eps = eps
        self.device = named[places[0]][1].device
        sizes = [float(named[place][1].numel()) for place in places]
        self.sizes = torch.tensor(sizes, dtype=torch.float32 if self.device.type in _NO_DOUBLE else torch.float64)
        self.sizes = self.sizes.to(self.device)

    def measure(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        """Statistics of the tensors, float32 of shape (tensors, statistics)."""
        raise NotImplementedError


class _Large(_Part):
    """Tensors that are measured one by one."""

    def measure(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        flat = [tensor.reshape(-1) for tensor in tensors]
        if self.device.type == "cpu":
            return torch.tensor([self._on_cpu(one) for one in flat], dtype=torch.float32)
        columns: dict[str, torch.Tensor] = {}
        if "norm" in self.statistics:
            columns["norm"] = norms(flat)
        if "mean" in self.statistics:
            columns["mean"] = _stack([one.mean(dtype=_wide(one.dtype)) for one in flat])
        if "min" in self.statistics or "max" in self.statistics:
            pairs = [tuple(one.aminmax()) for one in flat]
            columns["min"] = _stack([pair[0] for pair in pairs])
            columns["max"] = _stack([pair[1] for pair in pairs])
        if "zeros" in self.statistics:
            counts = torch.stack([(one.abs() < self.eps).sum() for one in flat])
            columns["zeros"] = counts.to(self.sizes.dtype) / self.sizes
        if "nans" in self.statistics:
            columns["nans"] = torch.stack([torch.isnan(one).sum() for one in flat])
        return _matrix(columns, self.statistics)

    def _on_cpu(self, flat: torch.Tensor) -> list[float]:
        """All statistics of a tensor, while it is in the cache; there is no device to wait for."""
        norm = _norm_on_cpu(flat) if "norm" in self.statistics else math.nan
        found = {"norm": norm}
        if "mean" in self.statistics:
            found["mean"] = flat.mean(dtype=_wide(flat.dtype)).item()
        if "min" in self.statistics:
            found["min"] = flat.amin().item()
        if "max" in self.statistics:
            found["max"] = flat.amax().item()
        if "zeros" in self.statistics:
            found["zeros"] = _zeros_on_cpu(flat, self.eps) / flat.numel()
        if "nans" in self.statistics:
            found["nans"] = 0.0 if math.isfinite(norm) else float(torch.isnan(flat).sum())
        return [found[name] for name in self.statistics]


class _Rows(_Part):
    """Small tensors, each in a row of one buffer."""

    def __init__(
        self,
        named: Sequence[tuple[str, torch.Tensor]],
        places: list[int],
        statistics: tuple[str, ...],
        eps: float,
        width: int,
    ) -> None:
        super().__init__(named, places, statistics, eps)
        given = [named[place][1] for place in places]
        self._rows = torch.zeros(len(given), width, dtype=_wide(given[0].dtype), device=self.device)
        self._views = [self._rows[at, : one.numel()].view(one.shape) for at, one in enumerate(given)]
        sizes = torch.tensor([one.numel() for one in given], device=self.device)
        self._used = torch.arange(width, device=self.device)[None, :] < sizes[:, None]
        self._double = self.device.type not in _NO_DOUBLE
        self._full = all(one.numel() == width for one in given)

    def measure(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        rows = self._rows
        _copy(self._views, tensors)
        wide = rows.double() if self._double else rows
        columns: dict[str, torch.Tensor] = {}
        if "norm" in self.statistics:
            columns["norm"] = torch.linalg.vector_norm(wide, dim=1)
        if "mean" in self.statistics:
            columns["mean"] = wide.sum(1) / self.sizes
        if "min" in self.statistics:
            columns["min"] = self._filled(float("inf")).amin(1)
        if "max" in self.statistics:
            columns["max"] = self._filled(float("-inf")).amax(1)
        if "zeros" in self.statistics:
            columns["zeros"] = ((rows.abs() < self.eps) & self._used).sum(1) / self.sizes
        if "nans" in self.statistics:
            columns["nans"] = torch.isnan(rows).sum(1)
        return _matrix(columns, self.statistics)

    def _filled(self, value: float) -> torch.Tensor:
        return self._rows if self._full else torch.where(self._used, self._rows, value)


def _plan(named: Sequence[tuple[str, torch.Tensor]], statistics: tuple[str, ...], eps: float) -> list[_Part]:
    """How a list of tensors is measured: small ones of one device, width and dtype together, large ones of a device together."""
    small: dict[Any, list[int]] = {}
    large: dict[torch.device, list[int]] = {}
    for place, (_, tensor) in enumerate(named):
        size = tensor.numel()
        if size > SMALL or len(named) == 1:
            large.setdefault(tensor.device, []).append(place)
        else:
            width = next(width for width in _WIDTHS if size <= width)
            small.setdefault((tensor.device, width, tensor.dtype), []).append(place)
    parts: list[_Part] = [_Large(named, places, statistics, eps) for places in large.values()]
    parts += [_Rows(named, places, statistics, eps, key[1]) for key, places in small.items()]
    return parts


def _vector_norm(flat: torch.Tensor, **options: Any) -> torch.Tensor:
    norm: torch.Tensor = torch.linalg.vector_norm(flat, **options)
    return norm


def _norm_on_cpu(flat: torch.Tensor) -> float:
    """Norm of a flat tensor, with the error of a sum of 1024 squares: one long sum is off by 1e-5 at a million numbers."""
    if flat.dtype == torch.float64 or flat.numel() <= SMALL:
        return _vector_norm(flat, dtype=torch.float64).item()
    whole = flat.numel() // _ROW * _ROW
    rows = _vector_norm(flat[:whole].view(-1, _ROW), dim=1, dtype=_wide(flat.dtype))
    norm = _vector_norm(rows, dtype=torch.float64).item()
    if not 1e-15 < norm < 1e18:  # squares of float32 may have left its range
        return _vector_norm(flat, dtype=torch.float64).item()
    if whole == flat.numel():
        return norm
    return math.hypot(norm, _vector_norm(flat[whole:], dtype=torch.float64).item())


def _zeros_on_cpu(flat: torch.Tensor, eps: float) -> float:
    """How many numbers are below eps: a comparison in place stays a vector operation, three times as fast as another."""
    scratch = torch.empty(min(_PIECE, flat.numel()), dtype=_wide(flat.dtype))
    count = 0.0
    for start in range(0, flat.numel(), _PIECE):
        piece = flat[start : start + _PIECE]
        count += torch.abs(piece, out=scratch[: piece.numel()]).lt_(eps).sum().item()
    return count


def _copy_one_by_one(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    for target, source in zip(targets, sources):
        target.copy_(source)


_copy: Final = getattr(torch, "_foreach_copy_", _copy_one_by_one)  # younger than torch 2.1


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Type in which numbers of a dtype are added up."""
    return dtype if dtype in _WIDE else torch.float32


def _stack(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values if len({one.dtype for one in values}) == 1 else [one.to(torch.float32) for one in values])


def _matrix(columns: dict[str, torch.Tensor], statistics: Sequence[str]) -> torch.Tensor:
    return torch.stack([columns[name].to(torch.float32) for name in statistics], dim=1)
