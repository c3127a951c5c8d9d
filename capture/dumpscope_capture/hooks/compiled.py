"""Compiled code runs eagerly while a capture runs, as compiled kernels have no calls to record. Before torch 2.6 it does not.

The numbers of such a dump are those of eager code. So each compiled region that runs is named in the notes of the step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.context import LOG

_WRAPPERS: Final = ("compile_wrapper", "_fn")
"""Functions of torch._dynamo that call what was compiled, of newer and of older versions."""


class EagerMode:
    """Makes code compiled by torch.compile run eagerly between `begin` and `end`.

    missed: compiled code ran, and this torch cannot switch it off
    """

    def __init__(self) -> None:
        self._stance: Any = None
        self.missed = False

    def begin(self, models: Sequence[torch.nn.Module] = ()) -> None:
        """Only needed if torch.compile was used before; code that is compiled later sees the function mode and runs eagerly."""
        if "torch._dynamo" not in sys.modules or self._stance is not None:
            return
        set_stance = getattr(torch.compiler, "set_stance", None)
        if set_stance is None:
            self._look_for_compiled(models)
            return
        self._stance = set_stance("force_eager")
        self._stance.__enter__()

    def _look_for_compiled(self, models: Sequence[torch.nn.Module] = ()) -> None:
        """Say once that compiled code is not recorded, when the program has some."""
        if self.missed or not (torch._dynamo.utils.counters.get("frames") or any(map(_has_compiled, models))):
            return
        self.missed = True
        LOG.warning(
            "torch %s cannot switch torch.compile off (2.6 can): only the module and the results of compiled code are recorded",
            torch.__version__,
        )

    def end(self) -> None:
        if not hasattr(torch.compiler, "set_stance") and "torch._dynamo" in sys.modules:
            self._look_for_compiled()
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.__exit__(None, None, None)


def compiled_regions(frame: FrameType | None) -> Iterator[Any]:
    """Functions and bound methods given to torch.compile that run around a call, the innermost first. frame: of the call"""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None or not getattr(dynamo, "cached_backends", True):  # nothing was compiled in this process
        return
    path = dynamo.__file__
    while frame is not None:
        code = frame.f_code
        if code.co_filename == path and code.co_name in _WRAPPERS:
            known = frame.f_locals
            if type(known.get("self")).__name__ != "DisableContext" and "fn" in known:
                yield known["fn"]
        frame = frame.f_back


def region_name(function: Any) -> str:
    """Name of what was compiled: the class of a module, or the function with its module."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        return type(owner).__name__
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{getattr(function, '__module__', None) or '?'}.{name}"


def _has_compiled(model: torch.nn.Module) -> bool:
    """Whether `torch.compile(part)` or `part.compile()` was called for a part of a model."""
    return any(_is_compiled(part) for part in model.modules())


def _is_compiled(module: torch.nn.Module) -> bool:
    return isinstance(module, torch._dynamo.OptimizedModule) or module._compiled_call_impl is not None
