"""The module of its model that a thread is in, followed by global hooks: no module is changed, and no model is passed in."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.nn.modules import module as hooks


class _Stack(threading.local):
    def __init__(self) -> None:
        self.open: list[tuple[int, str]] = []


class ModulePaths:
    """Follows modules between `install` and `remove`. A module called outside all others is a root; paths begin there."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[torch.nn.Module, str] = WeakKeyDictionary()
        self._stack = _Stack()
        self._handles: list[Any] = []

    def install(self) -> None:
        if not self._handles:
            self._handles = [
                hooks.register_module_forward_pre_hook(self._before),
                hooks.register_module_forward_hook(self._after, always_call=True),
            ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._stack.open.clear()

    @property
    def now(self) -> str | None:
        """The innermost module this thread is in: `blocks.1.norm (GroupNorm)`."""
        return self._stack.open[-1][1] if self._stack.open else None

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        if module not in self._names:
            for path, part in module.named_modules():
                if part not in self._names:
                    kind = type(part).__name__
                    self._names[part] = f"{path} ({kind})" if path else kind
        self._stack.open.append((id(module), self._names[module]))

    def _after(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        places = [place for place, (owner, _) in enumerate(self._stack.open) if owner == id(module)]
        if places:
            del self._stack.open[places[-1] :]
