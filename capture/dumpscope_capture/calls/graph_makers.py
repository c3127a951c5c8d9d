"""Tools that run the program to make a graph of it: `torch.jit.trace`, `torch.export`, `torch.fx` and `make_fx`.

What runs under them trains nothing, and a recording would become part of the graph. So the capture steps aside: its hooks stay,
and record and compute nothing until the tool is done.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import torch
import torch.fx

_SYMBOLIC: Final[Any] = vars(sys.modules["torch.fx._symbolic_trace"])
_COMPILER: Final[Any] = vars(torch.compiler)
_jit_state: Final = torch._C._get_tracing_state
_dispatch_modes: Final = torch._C._len_torch_dispatch_stack


def graph_maker() -> str | None:
    """Name of the tool that makes a graph in this thread now; None where the program just runs."""
    if _jit_state() is not None:
        return "torch.jit.trace"
    if _COMPILER.get("_is_exporting_flag"):
        return "torch.export"
    if _dispatch_modes():
        if _records_operators():
            return "make_fx"
        if _functionalizes():
            return "torch.export"
    if _traces_symbols():
        return "torch.fx.symbolic_trace"
    return "torch.compile" if _COMPILER.get("_is_compiling_flag") else None


def _traces_symbols() -> bool:
    """Whether `torch.fx` traces. torch 2.14 keeps it by thread; until then it is a flag of the module."""
    ask = _SYMBOLIC.get("_get_is_fx_tracing")
    return bool(ask() if ask is not None else _SYMBOLIC.get("_is_fx_tracing_flag"))


def _functionalizes() -> bool:
    """Whether operators of this thread are taken apart for a graph: the second phase of `torch.export` in torch 2.1 and 2.2."""
    return bool(torch._C._dispatch_tls_is_dispatch_key_included(torch._C.DispatchKey.Functionalize))


def _records_operators() -> bool:
    """Whether a mode of this thread writes the operators that run into a graph."""
    keys: Any = getattr(torch._C, "_TorchDispatchModeKey", None)
    find: Any = getattr(torch._C, "_get_dispatch_mode", None)
    return keys is not None and find is not None and find(keys.PROXY) is not None
