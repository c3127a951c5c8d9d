"""An origin before it is worded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """items: the item pairs that show it; group: further node pairs of the same cause
    blame, before, gradient: of a weight that a step of the same run made different: by which part of it, the number of that
        step, and the first node of it whose gradient differs, if one does (see `analysis.steps`)
    hidden: what is at fault was not dumped, this is where it is first seen; faint: its own output shows nothing
    saturated: an output stands at the limit of its dtype on one side only; ties: only the order of indices differs
    """

    pair: int
    kind: str
    rule: str
    items: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    weight: str = ""
    blame: str = ""
    before: int = -1
    gradient: str = ""
    random: bool = False
    hidden: bool = False
    faint: bool = False
    saturated: bool = False
    ties: bool = False
