"""Level L2 off Ascend: every aten operator that runs, in forward and backward, seen by a dispatch mode."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope_capture.names import Api
from dumpscope_capture.recording import Recording


class AtenMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records operators as `Aten.mm.0.forward`; those of a backward pass are nodes of their own, after the forward ones."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recording = recording
        self._apis: dict[Any, Api] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        recording = self._recording
        call = None
        if recording.active and getattr(func, "namespace", "") not in ("prim", "profiler"):
            with recording.faults.guard("a call's arguments"):
                call = recording.begin_call(self._api(func), args, kwargs, sys._getframe(1))
        try:
            result = func(*args, **kwargs)
        except BaseException:
            if call is not None:
                recording.fail_call(call)
            raise
        if call is not None:
            with recording.faults.guard("a call's results"):
                call.first = -1  # gradients are operators of their own here
                recording.end_call(call, result)
        return result

    def _api(self, func: torch._ops.OpOverload) -> Api:
        api = self._apis.get(func)
        if api is None:
            name = func._schema.name.rsplit("::", 1)[-1]
            prefix = "Aten" if func.namespace == "aten" else func.namespace
            api = self._apis[func] = Api(prefix=prefix, name=name, function=func)
        return api
