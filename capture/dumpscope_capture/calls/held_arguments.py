"""Arguments of a call kept as they were before it, for checks that are made after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from dumpscope_capture.context import Unobserved
from dumpscope_capture.values.live_memory import is_freed
from dumpscope_capture.values.nonfinite import NonfiniteMarks


class HeldArguments:
    """Arguments of a call as they were before it. in_place: the function writes into its tensors, so they are copied;
    marked: note which values are not finite."""

    __slots__ = ("args", "kwargs", "marks")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, in_place: bool, marked: bool) -> None:
        self.args, self.kwargs = args, kwargs
        self.marks: NonfiniteMarks | None = None
        with Unobserved():
            if marked:
                self.marks = NonfiniteMarks()
                self.marks.gather((args, kwargs), scalars=True)
            if in_place:
                self.args = tuple(_copy(value) for value in args)
                self.kwargs = {key: _copy(value) for key, value in kwargs.items()}


def writes_in_place(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a function writes into its arguments: `add_`, `__iadd__`, `relu(inplace=True)`, `out=`."""
    special = name.startswith("__")
    return (
        (name.endswith("_") and not special)
        or (special and name.startswith("__i") and name not in ("__invert__", "__index__", "__int__"))
        or name == "__setitem__"
        or bool(kwargs.get("inplace"))
        or kwargs.get("out") is not None
    )


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not value.is_meta and value.layout is torch.strided and not is_freed(value):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value
