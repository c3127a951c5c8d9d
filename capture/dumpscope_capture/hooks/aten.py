"""Level L2 off Ascend: every aten operator that runs, in forward and backward, seen by a dispatch mode."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from dumpscope_capture.calls.names import Api
from dumpscope_capture.record.recording import Recording


class AtenMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operators as `Aten.mm.0.forward`; those of a backward pass are separate nodes, after the forward ones.

    idle: recording is over, but the mode could not be removed from its thread
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.idle = False
        self._recording = recording
        self._apis: dict[Any, Api] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        recording = self._recording
        call = None
        if recording.active and not self.idle and getattr(func, "namespace", "") not in ("prim", "profiler"):
            with recording.errors.guard("a call's arguments"):
                call = recording.begin_call(self._api(func), args, kwargs, sys._getframe(1))
        try:
            result = func(*args, **kwargs)
        except BaseException:
            if call is not None:
                recording.fail_call(call)
            raise
        if call is not None:
            with recording.errors.guard("a call's results"):
                call.first = -1  # at this level gradients are separate operators
                recording.end_call(call, result)
        return result

    def enter(self) -> None:
        """Push the mode on this thread's stack, and remove idle modes from it."""
        for mode in _get_current_dispatch_mode_stack():
            if isinstance(mode, AtenMode) and mode.idle:
                mode.leave()
        self.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> bool:
        """Remove the mode from this thread's stack, also below modes that the program has pushed since. False where it is not
        on this stack; it is idle then."""
        self.idle = True
        if not any(mode is self for mode in _get_current_dispatch_mode_stack()):
            _left_behind.append(self)
            return False
        above = []
        while (mode := _get_current_dispatch_mode_stack()[-1]) is not self:
            _exit(mode)
            above.append(mode)
        _exit(self)
        for mode in reversed(above):
            TorchDispatchMode.__enter__(mode)  # type: ignore[no-untyped-call]
        return True

    def _api(self, func: torch._ops.OpOverload) -> Api:
        api = self._apis.get(func)
        if api is None:
            name = func._schema.name.rsplit("::", 1)[-1]
            prefix = "Aten" if func.namespace == "aten" else func.namespace
            api = self._apis[func] = Api(prefix=prefix, name=name, function=func)
        return api


_left_behind: list[AtenMode] = []
"""Idle modes on the stack of another thread. Up to torch 2.7 that stack does not keep them alive, and using it crashes."""


def _exit(mode: TorchDispatchMode) -> None:
    """Pop a mode with the base class's code, so that a program's own `__exit__` does not run."""
    TorchDispatchMode.__exit__(mode, None, None, None)  # type: ignore[no-untyped-call]
