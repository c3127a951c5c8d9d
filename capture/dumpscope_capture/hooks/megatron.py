"""Micro steps of Megatron's pipeline: counts the calls of `forward_step` and `backward_step` of its schedules in a step.

With micro steps a node's parent in construct.json is `[parent, micro step]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from dumpscope_capture.context import peek
from dumpscope_capture.hooks.patches import Patches
from dumpscope_capture.write.sink import StepSink
from dumpscope_format.schema import PSEUDO_PARENTS

SCHEDULES: Final = "megatron.core.pipeline_parallel.schedules"


class MicroSteps:
    """Counts micro steps while a capture runs. Programs without Megatron have none."""

    def __init__(self) -> None:
        self._patches = Patches()
        self.reset()

    def reset(self) -> None:
        """The training step ends."""
        self._forward = self._backward = -1
        self._now = -1

    @property
    def found(self) -> bool:
        """Whether the program has imported Megatron's schedules."""
        return SCHEDULES in sys.modules

    @property
    def current(self) -> int | None:
        """Number of the micro step that runs or ran last, from 0; None before the first."""
        return self._now if self._now >= 0 else None

    @property
    def last(self) -> int | None:
        """The highest number so far."""
        number = max(self._forward, self._backward)
        return number if number >= 0 else None

    def install(self) -> None:
        schedules = sys.modules.get(SCHEDULES)
        if schedules is None or self._patches:
            return
        for name, count in (("forward_step", self._count_forward), ("backward_step", self._count_backward)):
            function = peek(schedules, name)
            if callable(function):
                self._patches.put(schedules, name, _with_count(function, count))

    def remove(self) -> None:
        self._patches.undo()

    def lift(self) -> None:
        """Take the wrappers away for a while."""
        self._patches.lift()

    def lay(self) -> None:
        """End of `lift`."""
        self._patches.lay()

    def _count_forward(self) -> None:
        self._forward += 1
        self._now = self._forward

    def _count_backward(self) -> None:
        self._backward += 1
        self._now = self._backward


def _with_count(function: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    @wraps(function)
    def count_and_call(*args: Any, **kwargs: Any) -> Any:
        count()
        return function(*args, **kwargs)

    return count_and_call


def micro_sink(steps: MicroSteps) -> type[StepSink]:
    """A sink that adds the running micro step to every node's parent."""

    class MicroSink(StepSink):
        def add(
            self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, parent: Any = None, linked: bool = True
        ) -> None:
            super().add(name, body, stack=stack, parent=_with_micro_step(parent, steps), linked=linked)

        def parent(self, name: str, parent: Any) -> None:
            super().parent(name, parent if name in PSEUDO_PARENTS else _with_micro_step(parent, steps))

    return MicroSink


def _with_micro_step(parent: Any, steps: MicroSteps) -> Any:
    number = steps.current
    return parent if number is None else [parent, number]
