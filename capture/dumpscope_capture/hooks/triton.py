"""Triton kernels, which no function mode sees: `Triton.{kernel}.{n}.forward` with the arguments before and after the launch.

The launching methods are wrapped between start and stop. A kernel writes into its arguments, so its arguments are its results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from dumpscope_capture.calls.names import Api
from dumpscope_capture.context import peek
from dumpscope_capture.hooks.patches import Patches
from dumpscope_capture.record.recording import Recording

PREFIX: Final = "Triton"
_LAUNCHERS: Final = (
    ("triton.runtime.jit", "JITFunction"),
    ("triton.runtime.autotuner", "Autotuner"),
    ("triton.runtime.autotuner", "Heuristics"),
)


class TritonLaunches:
    """The wrapped launchers, if the program has imported Triton."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._patches = Patches()
        self._known: dict[str, Api] = {}

    def install(self) -> None:
        if self._patches:
            return
        for module, name in _LAUNCHERS:
            kind = peek(sys.modules.get(module), name)
            run = vars(kind).get("run") if isinstance(kind, type) else None
            if callable(run):
                self._patches.put(kind, "run", self._wrap_run(run))

    def remove(self) -> None:
        self._patches.undo()

    def lift(self) -> None:
        """Take the wrappers away for a while."""
        self._patches.lift()

    def lay(self) -> None:
        """End of `lift`."""
        self._patches.lay()

    def _wrap_run(self, run: Callable[..., Any]) -> Callable[..., Any]:
        recording = self._recording

        @wraps(run)
        def launch(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            thread = recording.thread_state
            if not recording.active or thread.inside or recording.functions_off or kwargs.get("warmup") is True:
                return run(kernel, *args, **kwargs)
            call = None
            with recording.errors.guard("a call's arguments"):
                call = recording.begin_call(self._api(kernel), args, kwargs, sys._getframe(1))
            thread.inside += 1  # an autotuner itself launches the kernel that it chose
            try:
                result = run(kernel, *args, **kwargs)
            except BaseException:
                if call is not None:
                    recording.fail_call(call)
                raise
            finally:
                thread.inside -= 1
            if call is not None and call.outcome != "drop":
                with recording.errors.guard("a call's results"):
                    recording.take_results(call, list(args))
            return result

        return launch

    def _api(self, kernel: Any) -> Api:
        name = kernel_name(kernel)
        api = self._known.get(name)
        if api is None:
            function = getattr(kernel, "fn", kernel)
            api = self._known[name] = Api(prefix=PREFIX, name=name, function=getattr(function, "fn", function))
        return api


def kernel_name(kernel: Any) -> str:
    """Name of the Python function behind a launcher, with `_` for dots, which separate parts of node names."""
    for holder in (kernel, getattr(kernel, "fn", None), getattr(getattr(kernel, "fn", None), "fn", None)):
        name = getattr(holder, "__name__", None)
        if isinstance(name, str) and name:
            return name.replace(".", "_")
    return type(kernel).__name__
