"""Records a range of forward passes of one model: in inference each pass gives one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from dumpscope_capture.config import ConfigError


class Pausable(Protocol):
    """Can be paused and resumed, as a session."""

    def resume(self) -> None: ...

    def pause(self) -> None: ...


class TokenWindow:
    """Switches recording on at the first forward pass of the range and off after the last."""

    def __init__(self, session: Pausable, token_range: Sequence[int]) -> None:
        allowed = "two whole numbers, 0 <= first <= last"
        if not isinstance(token_range, (list, tuple)) or len(token_range) != 2:
            raise ConfigError("token_range", token_range, allowed)
        first, last = token_range
        if any(isinstance(end, bool) or not isinstance(end, int) for end in token_range) or not 0 <= first <= last:
            raise ConfigError("token_range", token_range, allowed)
        self._session = session
        self._first, self._last = first, last
        self._count = 0
        self._handle: Any = None

    def __eq__(self, other: object) -> bool:
        """Whether both have the same range, in the same capture."""
        if not isinstance(other, TokenWindow):
            return NotImplemented
        return (self._session, self._first, self._last) == (other._session, other._first, other._last)

    __hash__ = None  # type: ignore[assignment]

    def begin(self, model: torch.nn.Module) -> None:
        """Recording was switched on: pause it outside the range. Passes are counted until `end`."""
        if self._handle is None:
            self._handle = torch.nn.modules.module.register_module_forward_pre_hook(self._hook_of(model))
        self.limit()

    def limit(self) -> None:
        """Pause if the current pass is outside the range."""
        if not self._first <= self._count <= self._last:
            self._session.pause()

    def end(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    @property
    def watching(self) -> bool:
        """Whether it is between `begin` and `end`."""
        return self._handle is not None

    def reset(self) -> None:
        """A new step begins: passes are counted from 0."""
        self._count = 0

    def _hook_of(self, model: torch.nn.Module) -> Any:
        def passes(module: torch.nn.Module, args: Any) -> None:
            if module is not model:
                return
            if self._count == self._first:
                self._session.resume()
            elif self._count == self._last + 1:
                self._session.pause()
            self._count += 1

        return passes
