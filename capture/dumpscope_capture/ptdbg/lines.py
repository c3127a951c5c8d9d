"""Values into lines: what an argument, result or gradient is in a .pkl file, before its statistics are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from dumpscope_capture.values.dedup import Seen, Sight
from dumpscope_capture.values.hashing import crc, digits, raw
from dumpscope_capture.values.recorder import DEPTH_LIMIT, Recorder

NPY: Final = ".npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One tensor or number. record: of a tensor, complete once the recorder has resolved it; a number's value itself"""

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
    """Records are lists of lines: containers are flattened, positions stand in the names, and what has no line leaves a gap.

    spelled: an item's name from the engine's, None for what has no place in the file
    filtered: leave out numbers, and tensors of whole numbers or bools, without dimensions or without elements
    """

    suffix = NPY

    def __init__(self, *, spelled: Callable[[str], str | None], filtered: bool, task: str, summary: str) -> None:
        super().__init__(
            task=task, summary=summary, wants_tensor=(lambda item: True) if task == "tensor" else None, seen=_Unseen()
        )
        self._spelled = spelled
        self._filtered = filtered

    def record_quietly(self, value: Any, item: str, *, keyword: str | None = None) -> list[Line]:
        lines: list[Line] = []
        name = self._spelled(item)
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

    def _hash_now(self, tensor: torch.Tensor, sight: Sight | None) -> str | float | int | bool:
        return self._hash(tensor)

    def _hash(self, tensor: torch.Tensor) -> str:
        """CRC-32 of the bytes that the .npy file of the tensor would have."""
        return digits(crc(raw(tensor.float() if tensor.dtype is torch.bfloat16 else tensor)))


class _Unseen(Seen):
    """Every tensor is new: each file is written, as the readers of this format know no links."""

    def __init__(self) -> None:
        super().__init__(thorough=True)

    def look(self, tensor: torch.Tensor) -> None:
        return None


def _is_minor(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.dim() or not tensor.numel()
