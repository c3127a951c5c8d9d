"""Converts arguments, results and gradients to lines of a .pkl file, before their statistics are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from dumpscope_capture.values.dedup import Dedup, KnownMemory
from dumpscope_capture.values.hashing import crc_of, digits
from dumpscope_capture.values.recorder import DEPTH_LIMIT, Recorder
from dumpscope_format.older_python import dataclass

NPY: Final = ".npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One tensor or number. record: of a tensor, complete after `Recorder.resolve`; for a number its value"""

    name: str
    record: Any

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.record, dict)

    @property
    def file(self) -> str | None:
        """Name of the tensor's file."""
        return self.record.get("data_name") if self.is_tensor else None


class LineRecorder(Recorder):
    """Records are lists of lines: containers are flattened, names hold positions, and values without a line leave a gap.

    spell: gives an item's name from the engine's name, None for an item that is not in the file
    filtered: leave out numbers, and tensors of whole numbers or bools, without dimensions or without elements
    """

    suffix = NPY

    def __init__(self, *, spell: Callable[[str], str | None], filtered: bool, task: str, summary: str) -> None:
        super().__init__(
            task=task, summary=summary, wants_tensor=(lambda item: True) if task == "tensor" else None, dedup=_NoDedup()
        )
        self._spell = spell
        self._filtered = filtered

    def record_unobserved(self, value: Any, item: str, *, keyword: str | None = None) -> list[Line]:
        lines: list[Line] = []
        name = self._spell(item)
        if name is not None and self.task != "structure":
            self._gather(value, name, lines, 0)
        return lines

    def _gather(self, value: Any, name: str, lines: list[Line], depth: int) -> None:
        if isinstance(value, torch.Tensor):
            if not value.is_meta and not (self._filtered and _is_minor(value)):
                lines.append(Line(name=name, record=self._tensor(value, name)))
        elif isinstance(value, (bool, int, float)):
            if not self._filtered:
                lines.append(Line(name=name, record=value))
        elif depth < DEPTH_LIMIT:
            if isinstance(value, Mapping):
                value = list(value.values())
            if isinstance(value, (tuple, list)):
                for place, part in enumerate(value):
                    self._gather(part, f"{name}.{place}", lines, depth + 1)
            elif hasattr(type(value), "__dataclass_fields__"):
                for place, field in enumerate(type(value).__dataclass_fields__):
                    self._gather(getattr(value, field, None), f"{name}.{place}", lines, depth + 1)

    def _hash_now(self, tensor: torch.Tensor, known: KnownMemory | None) -> str | float | int | bool:
        return self._hash(tensor)

    def _hash(self, tensor: torch.Tensor) -> str:
        """CRC-32 of the bytes that the .npy file of the tensor would have."""
        return digits(crc_of(tensor.float() if tensor.dtype is torch.bfloat16 else tensor))


class _NoDedup(Dedup):
    """No deduplication: each file is written, as readers of this format know no links."""

    def __init__(self) -> None:
        super().__init__(thorough=True)

    def find(self, tensor: torch.Tensor) -> None:
        return None


def _is_minor(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.dim() or not tensor.numel()
