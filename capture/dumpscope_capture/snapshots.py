"""Copies of tensors as they are now, for files and hashes that are made later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A row-major copy on the host, complete once `event` has passed. name: file it goes to, "" for none."""

    name: str
    tensor: torch.Tensor
    requires_grad: bool
    event: Any

    @property
    def nbytes(self) -> int:
        return self.tensor.untyped_storage().nbytes()

    def wait(self) -> torch.Tensor:
        """The copy, after the device has delivered it."""
        if self.event is not None:
            self.event.synchronize()
        return self.tensor


def take(tensor: torch.Tensor, name: str, *, requires_grad: bool) -> Snapshot:
    """Copy a detached strided tensor. Its later changes do not show; dimensions that only repeat (stride 0) stay that way.

    CUDA tensors are copied into pinned memory in stream order, so nothing waits; other devices copy at once.
    """
    shape, stride = tensor.shape, tensor.stride()
    repeated = [dim for dim, step in enumerate(stride) if step == 0 and shape[dim] > 1]
    for dim in repeated:
        tensor = tensor.narrow(dim, 0, 1)
    event = None
    if tensor.device.type == "cpu":
        copy = tensor.clone(memory_format=torch.contiguous_format)
    elif tensor.device.type == "cuda":
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        copy.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(tensor.device))
    else:
        copy = tensor.to("cpu").contiguous()
    if repeated:
        copy = copy.expand(shape)
    return Snapshot(name=name, tensor=copy, requires_grad=requires_grad, event=event)
