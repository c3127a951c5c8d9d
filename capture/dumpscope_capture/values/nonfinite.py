"""Which values that are not finite occur in tensors and numbers. Reading the answer waits for the device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from dumpscope_capture.values.live_memory import is_freed
from dumpscope_capture.values.tensor_subclasses import unwrap

_LAST: Final = frozenset(
    torch.finfo(kind).max for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
)


class NonfiniteMarks:
    """Which values that are not finite occur. inf: +inf anywhere; tensor_inf: +inf in a tensor; negative: -inf anywhere;
    saturated: the largest or smallest number of a type with 16 bits or more, the result of an overflow that saturates."""

    def __init__(self) -> None:
        self.nan = self.inf = self.tensor_inf = self.negative = self.saturated = False
        self._flags: list[torch.Tensor] = []

    @property
    def finite(self) -> bool:
        return not (self.nan or self.inf or self.negative)

    def exceeds(self, before: NonfiniteMarks) -> bool:
        """Whether infinities or saturated numbers occur that `before` does not have."""
        return (
            (self.inf and not before.inf)
            or (self.negative and not before.negative)
            or (self.saturated and not (before.saturated or before.inf or before.negative))
        )

    def gather(self, value: Any, *, scalars: bool) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, float):
            if scalars:
                self.inf |= value == math.inf
                self.negative |= value == -math.inf
                self.saturated |= abs(value) in _LAST
        elif isinstance(value, Mapping):
            for part in value.values():
                self.gather(part, scalars=scalars)
        elif isinstance(value, (list, tuple)):
            for part in value:
                self.gather(part, scalars=scalars)

    def _tensor(self, tensor: torch.Tensor) -> None:
        if type(tensor) not in (
            torch.Tensor,
            torch.nn.Parameter,
        ):  # this rank's part: operators on the whole communicate
            _, tensor, _, absent = unwrap(tensor)
            if absent is not None:
                return
        numeric = tensor.is_floating_point() or tensor.is_complex()
        if tensor.is_meta or not tensor.numel() or not numeric or tensor.layout is not torch.strided:
            return
        if is_freed(tensor):
            return
        try:
            data = tensor.detach()
            data = data.abs() if data.is_complex() else data
            last = torch.finfo(data.dtype).max if data.element_size() > 1 else math.inf
            data = data if data.element_size() > 1 else data.float()
            self._flags.append(
                torch.stack([
                    data.isnan().any(), (data == math.inf).any(), (data == -math.inf).any(), (data.abs() == last).any(),
                ]).cpu()
            )  # fmt: skip
        except (RuntimeError, NotImplementedError):
            return

    def read(self) -> None:
        for flags in self._flags:
            nan, positive, negative, last = flags.tolist()
            self.nan |= nan
            self.saturated |= last and not (positive or negative)
            self.inf |= positive
            self.tensor_inf |= positive
            self.negative |= negative
