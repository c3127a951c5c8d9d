"""Compiled code runs eagerly while a capture runs, as compiled kernels have no calls to record. Before torch 2.6 it does not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from dumpscope_capture.context import LOG


class EagerMode:
    """Makes code compiled by torch.compile run eagerly between `begin` and `end`; logs this once.

    missed: compiled code ran, and this torch cannot switch it off
    """

    def __init__(self) -> None:
        self._stance: Any = None
        self._logged = False
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
        if not self._logged and any(map(_has_compiled, models)):
            self._logged = True
            LOG.info("torch.compile is off while data is recorded: compiled code runs eagerly")

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


def _has_compiled(model: torch.nn.Module) -> bool:
    """Whether `torch.compile(part)` or `part.compile()` was called for a part of a model."""
    return any(_is_compiled(part) for part in model.modules())


def _is_compiled(module: torch.nn.Module) -> bool:
    return isinstance(module, torch._dynamo.OptimizedModule) or module._compiled_call_impl is not None
