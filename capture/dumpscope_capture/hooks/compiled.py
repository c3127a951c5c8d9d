"""Compiled code runs eagerly while a capture runs, as compiled kernels have no calls to record."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from dumpscope_capture.context import LOG


class EagerMode:
    """Makes code compiled by torch.compile run eagerly between `begin` and `end`; logs this once."""

    def __init__(self) -> None:
        self._stance: Any = None
        self._logged = False

    def begin(self, models: Sequence[torch.nn.Module] = ()) -> None:
        """Only needed if torch.compile was used before; code that is compiled later sees the function mode and runs eagerly."""
        if "torch._dynamo" not in sys.modules or self._stance is not None:
            return
        set_stance = getattr(torch.compiler, "set_stance", None)
        if set_stance is None:
            LOG.warning(
                "this torch cannot switch torch.compile off: what is compiled is not recorded, only its module and results are"
            )
            return
        self._stance = set_stance("force_eager")
        self._stance.__enter__()
        if not self._logged and any(_is_compiled(part) for model in models for part in model.modules()):
            self._logged = True
            LOG.info("torch.compile is off while data is recorded: compiled code runs eagerly")

    def end(self) -> None:
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.__exit__(None, None, None)


def _is_compiled(module: torch.nn.Module) -> bool:
    """Whether `torch.compile(module)` or `module.compile()` was called."""
    return isinstance(module, torch._dynamo.OptimizedModule) or module._compiled_call_impl is not None
