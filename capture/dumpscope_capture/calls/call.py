"""A call between its start and its end, and what its arguments and frame say about it."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import torch

from dumpscope_capture.calls.edges import Edge
from dumpscope_capture.calls.held_arguments import HeldArguments
from dumpscope_capture.calls.names import Api
from dumpscope_capture.calls.numbers import FILES, Number
from dumpscope_capture.calls.selection import Outcome, backward_name, is_backward
from dumpscope_capture.values.written import Writes

DROPOUTS: Final = frozenset(
    ("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
_CLIPPERS: Final = frozenset(
    (
        "clip_grad_norm_",
        "clip_grad_value_",
        "clip_grads_with_norm_",
        "_clip_grads_with_norm_",
        "get_total_norm",
        "_get_total_norm",
    )
)
_CLIP_LEVELS: Final = 10
OPTIMIZER: Final = "optimizer"
"""The pseudo parent of what an optimizer computes."""
NESTING_LIMIT: Final = 50
STOP: Final = "_StopRecomputationError"
"""The exception by which activation checkpointing ends a recomputation early."""


class Open(NamedTuple):
    """Something open in a thread. owner: id of the module; call: its node; frame: in which it runs, so that one can tell whether
    an exception ended it for which torch calls no hook (KeyboardInterrupt)"""

    owner: int
    call: Call
    frame: FrameType


class OptimizerStep(NamedTuple):
    """An optimizer's step that runs in a thread. frame: in which it runs; closures: code of the functions that it was given,
    which run the model again (LBFGS), or for the first time in a step (Lightning)"""

    frame: FrameType
    closures: frozenset[CodeType]


class ThreadState(threading.local):
    """What is open in one thread.

    modules: the open modules, outermost first; steps: of optimizers, outermost first; inside: number of wrapped calls that run
    """

    def __init__(self) -> None:
        self.modules: list[Open] = []
        self.steps: list[OptimizerStep] = []
        self.inside = 0

    def is_stepping(self) -> bool:
        """Whether an optimizer computes: its step runs, and none of the functions that it was given."""
        if not self.steps:
            return False
        step = self.steps[-1]
        if step.closures:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame is not step.frame:
                if frame.f_code in step.closures:
                    return False
                frame = frame.f_back
        return True

    def clear(self) -> None:
        self.modules.clear()
        self.steps.clear()


class Call:
    """A node between its start and its end.

    first: autograd sequence number at its start, -1 where no gradients are read; idle: a dropout that drops nothing
    number: its number, None for a call that was not counted
    region: label of a region of compiled code, "" for other calls
    writes: what it may write into
    substituted: treatment of the intervention that ran it
    saved: folder of the saved call, and sequence number; began, origin: sequence number, (stack, module), for an `Explainer`
    """

    __slots__ = (
        "api", "began", "body", "edges", "extra", "first", "held", "idle", "name", "number", "origin", "outcome", "parent",
        "region", "saved", "stack", "substituted", "writes",
    )  # fmt: skip

    def __init__(self, name: str, outcome: Outcome, parent: str | None, number: Number | None = None) -> None:
        self.name = name
        self.number = number
        self.outcome: Outcome = outcome
        self.parent = parent
        self.api: Api | None = None
        self.body: dict[str, Any] = {}
        self.stack: tuple[str, ...] | None = None
        self.edges: list[Edge | torch.Tensor | None] = []
        self.first = -1
        self.idle = False
        self.region = ""
        self.held: HeldArguments | None = None
        self.extra: dict[str, dict[str, str]] = {}
        self.substituted: str | None = None
        self.writes: Writes | None = None
        self.saved: tuple[Path, int] | None = None
        self.began = -1
        self.origin: tuple[tuple[str, ...], str | None] = ((), None)

    @property
    def label(self) -> str:
        return self.api.label if self.api is not None else self.region

    @property
    def made_again(self) -> bool:
        """Whether activation checkpointing makes the call again."""
        return self.number is not None and self.number.again

    @property
    def backward_parent(self) -> str | None:
        """The backward node around the call's own: where a checkpointed part is run again, that of its first time."""
        part = self.number.part if self.number is not None else None
        beside = part is not None and (self.parent is None or is_backward(self.parent))
        return backward_of(part.parent if part is not None and beside else self.parent)


def differentiable(args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors that can have a gradient, in order: nested containers flattened, keyword arguments last."""
    found: list[torch.Tensor] = []
    _gather(args, found, 0)
    if kwargs:
        _gather(kwargs, found, 0)
    return found


def _gather(value: Any, found: list[torch.Tensor], depth: int) -> None:
    if isinstance(value, torch.Tensor):
        if value.requires_grad or value.is_floating_point() or value.is_complex():
            found.append(value)
    elif depth < NESTING_LIMIT:
        if isinstance(value, (tuple, list)):
            for part in value:
                _gather(part, found, depth + 1)
        elif isinstance(value, dict):
            for part in value.values():
                _gather(part, found, depth + 1)
        elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
            for field in value.__dataclass_fields__:
                _gather(getattr(value, field, None), found, depth + 1)


def backward_of(parent: str | None) -> str | None:
    """Backward node of an enclosing forward node; None where there is none."""
    if parent is None or is_backward(parent):
        return parent
    return backward_name(parent) if ".forward." in parent else None


def code_of(function: Any) -> CodeType | None:
    """The code that runs when this is called; None for what is not written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__code__") and not hasattr(function, "__func__"):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - it is looked at, not asked for
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def is_clipping(frame: FrameType | None) -> bool:
    """Whether a call comes from torch's clipping of gradients."""
    for _ in range(_CLIP_LEVELS):
        if frame is None:
            return False
        if frame.f_code.co_name in _CLIPPERS and frame.f_code.co_filename.endswith("clip_grad.py"):
            return True
        frame = frame.f_back
    return False


def is_recomputed(frame: FrameType | None) -> bool:
    """Whether activation checkpointing calls again what it did not keep: a call inside a backward pass and below its code."""
    if torch._C._current_graph_task_id() == -1:
        return False
    while frame is not None:
        if frame.f_code.co_filename.endswith(FILES):
            return True
        frame = frame.f_back
    return False


def is_stopped(call: Call) -> bool:
    """Whether checkpointing ends a repetition inside this call, as it has what it needs. Ask while the exception is handled."""
    return call.made_again and type(sys.exc_info()[1]).__name__ == STOP


def drop_share(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Share of elements that a dropout drops. At 0 it adds no autograd node."""
    return kwargs.get("p", args[1] if len(args) > 1 else None)
