"""What later versions of torch have and 2.1, the oldest that capture runs on, lacks or calls otherwise."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import torch

if [int(part) for part in re.findall(r"\d+", torch.__version__)[:2]] < [2, 1]:
    raise ImportError(f"dumpscope_capture needs torch 2.1 or later, this is torch {torch.__version__}")

from torch.overrides import get_overridable_functions, get_testing_overrides, resolve_name
from torch.utils import _pytree
from torch.utils._python_dispatch import _disable_current_modes

disable_modes: Final = _disable_current_modes
UINT64: Final[torch.dtype | None] = getattr(torch, "uint64", None)
_FUNCTORCH: Final[Any] = torch._C._functorch


@contextmanager
def no_transforms() -> Iterator[None]:
    """A state outside all function transforms (grad, vmap...) that run."""
    stack = []
    try:
        while _FUNCTORCH.peek_interpreter_stack() is not None:
            stack.append(_FUNCTORCH.pop_dynamic_layer_stack())
        yield
    finally:
        while stack:
            _FUNCTORCH.push_dynamic_layer_stack(stack.pop())


def tree_leaves(tree: Any) -> list[Any]:
    """Values of nested containers, in order."""
    return _pytree.tree_flatten(tree)[0]


@lru_cache(maxsize=None)
def overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """torch's overridable functions by the module or class that has them."""
    with _quiet():
        return get_overridable_functions()


def overridable_name(function: Any) -> str | None:
    """Name of an overridable function, `torch.Tensor.add`; None for any other."""
    overridable_functions()
    name: str | None = resolve_name(function)
    return name


def stand_ins() -> dict[Any, Callable[..., Any]]:
    """For each overridable function a lambda with its parameters."""
    with _quiet():
        return get_testing_overrides()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of 2.1, whose tables look at deprecated names of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def autocast_dtype(kind: str) -> torch.dtype | None:
    """Type in which autocast computes on a type of device, "cuda"; None where it is off, or the device has no autocast."""
    try:
        if hasattr(torch, "get_autocast_dtype"):
            return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
        enabled, dtype = _autocast_switches(kind)
        return dtype() if enabled() else None
    except (AttributeError, RuntimeError):  # a device without autocast
        return None


def _autocast_switches(kind: str) -> tuple[Any, Any]:
    """Before 2.4 each type of device has functions of its own. Raises AttributeError where it has none."""
    known: Any = torch
    if kind == "cuda":
        return known.is_autocast_enabled, known.get_autocast_gpu_dtype
    if hasattr(torch, f"is_autocast_{kind}_enabled"):
        return getattr(torch, f"is_autocast_{kind}_enabled"), getattr(torch, f"get_autocast_{kind}_dtype")
    backend = getattr(torch, kind)  # one that registered itself, such as npu
    return backend.is_autocast_enabled, backend.get_autocast_dtype


def used_device() -> int | None:
    """Index of the accelerator that the process works on; None if it has used none so far."""
    for kind in ("cuda", "npu", "xpu"):
        backend = getattr(torch, kind, None)
        if backend is not None and backend.is_initialized():
            return int(backend.current_device())
    return None


is_compiling = getattr(torch.compiler, "is_compiling", None) or (lambda: False)
"""`torch.compiler.is_compiling`, which came with torch 2.3. In older versions compiled code is entered without our hooks."""
