"""The tree while it is built: growable lists, one place an entry."""

from __future__ import annotations

from typing import Final

UNPLACED: Final = 2**62


class Outline:
    """Entries 0..count-1 are the dumped nodes, later ones virtual.

    parent: entry or -1
    position: of virtual entries, a moment in units of `scale` a node; UNPLACED until something below them says
    """

    __slots__ = ("count", "names", "parent", "position", "scale", "table")

    def __init__(self, names: list[str]) -> None:
        self.count = len(names)
        self.names = list(names)
        self.table = {name: entry for entry, name in enumerate(names)}
        self.parent = [-1] * len(names)
        self.position = [UNPLACED] * len(names)
        self.scale = 1

    def add(self, name: str, parent: int = -1) -> int:
        """Append a virtual entry; its name must be new."""
        entry = self.table[name] = len(self.names)
        self.names.append(name)
        self.parent.append(parent)
        self.position.append(UNPLACED)
        return entry
