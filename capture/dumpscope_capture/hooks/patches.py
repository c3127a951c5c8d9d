"""Attributes of other packages that are replaced while a capture runs: of torch.distributed, Megatron and Triton."""

from __future__ import annotations

from typing import Any


class Patches:
    """Replaced attributes and their old values."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._made)

    def put(self, owner: Any, name: str, wrapper: Any) -> None:
        self._made.append((owner, name, getattr(owner, name), wrapper))
        setattr(owner, name, wrapper)

    def undo(self) -> None:
        """Restore all attributes, except those that other code has replaced since."""
        for owner, name, original, wrapper in reversed(self._made):
            if getattr(owner, name, None) is wrapper:
                setattr(owner, name, original)
        self._made = []

    def lift(self) -> None:
        """Restore the attributes for a while."""
        for owner, name, original, wrapper in reversed(self._made):
            if getattr(owner, name, None) is wrapper:
                setattr(owner, name, original)

    def lay(self) -> None:
        """End of `lift`."""
        for owner, name, original, wrapper in self._made:
            if getattr(owner, name, None) is original:
                setattr(owner, name, wrapper)
