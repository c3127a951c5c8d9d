"""Layers of torch that run as one fused kernel if nothing watches them: attention and encoder layers in evaluation.

They ask `torch.overrides.has_torch_function`, which any function mode makes true, and then compute in another way, with other
numbers. So our mode is taken off the thread's stack while such a layer chooses. If it calls a module of its own it has chosen the
slow way, and the mode returns at once. Else it has run as one kernel: a note says that nothing inside it is recorded.

Where a layer surely chooses the slow way by itself, the mode stays.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import module as hooks

from dumpscope_capture.context import HookErrors, is_running
from dumpscope_capture.hooks import functions
from dumpscope_capture.hooks.functions import FunctionMode
from dumpscope_capture.older_torch import is_compiling


class _Layer:
    """A layer that may run as one kernel. frame: of its call; modes: taken off for it; slow: it has called another module"""

    __slots__ = ("frame", "modes", "module", "slow")

    def __init__(self, module: nn.Module, frame: FrameType, modes: list[FunctionMode]) -> None:
        self.module = module
        self.frame = frame
        self.modes = modes
        self.slow = False

    def put_back(self) -> None:
        modes, self.modes = self.modes, []
        for mode in modes:
            if not mode.idle:
                functions.enter(mode)


class FastPaths(threading.local):
    """The layers that are choosing in this thread. Called before and after each module."""

    def __init__(self, errors: HookErrors) -> None:
        self._errors = errors
        self._open: list[_Layer] = []

    def before(self, module: nn.Module, args: tuple[Any, ...], frame: FrameType) -> None:
        """A module is called. frame: of the call"""
        with self._errors.guard("a fused layer"):
            self._before(module, args, frame)

    def _before(self, module: nn.Module, args: tuple[Any, ...], frame: FrameType) -> None:
        if self._open:
            self._leave_left(frame)
            if self._open:
                self._open[-1].slow = True
                self._open[-1].put_back()
        may = _LAYERS.get(getattr(type(module), "forward", None))
        if may is None or module.training or not _enabled() or not may(module, args, module_keywords(frame)):
            return
        modes = functions.mode_stack()
        if all(isinstance(mode, FunctionMode) for mode in modes):  # a mode of the program makes the layer slow anyway
            ours = [mode for mode in modes if not mode.idle]
            for mode in ours:
                functions.take_off(mode)
            self._open.append(_Layer(module, frame, ours))

    def after(self, module: nn.Module) -> bool:
        """A module has returned or raised. Returns whether it ran as one kernel."""
        if not self._open or self._open[-1].module is not module:
            return False
        layer = self._open.pop()
        layer.put_back()
        return not layer.slow

    def _leave_left(self, frame: FrameType) -> None:
        """Forget layers that were left by an exception after which torch calls no hook."""
        while self._open and not is_running(self._open[-1].frame, frame):
            self._open.pop().put_back()


class FastPathHooks:
    """Global hooks that call `FastPaths`, for a function mode without a recording of modules."""

    def __init__(self, errors: HookErrors) -> None:
        self._fast = FastPaths(errors)
        self._handles: list[Any] = []

    def install(self) -> None:
        self._handles = [
            hooks.register_module_forward_pre_hook(self._before),
            hooks.register_module_forward_hook(self._after, always_call=True),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _before(self, module: nn.Module, args: Any) -> None:
        if is_compiling():
            return
        self._fast.before(module, args if isinstance(args, tuple) else (args,), sys._getframe(1))

    def _after(self, module: nn.Module, args: Any, result: Any) -> None:
        if not is_compiling():
            self._fast.after(module)


def module_keywords(frame: FrameType) -> dict[str, Any]:
    """Keyword arguments of a module call, from its frame: torch does not pass them to global hooks."""
    given = frame.f_locals.get("kwargs")
    return given if isinstance(given, dict) else {}


def _enabled() -> bool:
    fused: Any = getattr(torch.backends, "mha", None)
    return (fused is None or fused.get_fastpath_enabled()) and not torch.is_autocast_enabled()


def _trains(*values: Any) -> bool:
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in values)


def _may_attention(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether nn.MultiheadAttention may choose its kernel. It calls no module, so that this has to be exact."""
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
    given = {**dict(zip(names, args)), **kwargs}
    query: Any = given.get("query")
    masks = [given.get("key_padding_mask"), given.get("attn_mask")]
    if not isinstance(query, torch.Tensor):
        return False
    itself = all(given.get(name) is query for name in ("key", "value"))
    return (
        itself
        and query.dim() == 3
        and bool(module.batch_first)
        and module.num_heads % 2 == 0
        and module.bias_k is None
        and module.bias_v is None
        and not module.add_zero_attn
        and bool(module._qkv_same_embed_dim)
        and module.in_proj_weight is not None
        and module.in_proj_bias is not None
        and query.dtype == module.in_proj_weight.dtype == module.in_proj_bias.dtype
        and not any(isinstance(mask, torch.Tensor) and mask.is_floating_point() for mask in masks)
        and not (query.is_nested and any(mask is not None for mask in masks))
        and not _trains(query, *module.parameters())
    )


def _may_layer(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether nn.TransformerEncoderLayer may choose its kernel."""
    attention = module.self_attn
    return (
        bool(attention.batch_first)
        and attention.num_heads % 2 == 0
        and bool(module.activation_relu_or_gelu)
        and not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
        and not _trains(*args, *kwargs.values(), *module.parameters())
    )


def _may_encoder(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether nn.TransformerEncoder may pack its input into a nested tensor for its layers."""
    return bool(getattr(module, "use_nested_tensor", False)) and (len(args) > 2 or "src_key_padding_mask" in kwargs)


_LAYERS: Final[dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]]] = {
    nn.MultiheadAttention.forward: _may_attention,
    nn.TransformerEncoderLayer.forward: _may_layer,
    nn.TransformerEncoder.forward: _may_encoder,
}
