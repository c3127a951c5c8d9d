"""An origin before it is worded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """items: the item pairs that show it; group: further node pairs of the same cause
    hidden: what is at fault was not dumped, this is where it is first seen; faint: its own output shows nothing
    """

    pair: int
    kind: str
    rule: str
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    weight: str = ""
    random: bool = False
    hidden: bool = False
    faint: bool = False
