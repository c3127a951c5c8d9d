"""Which calls have a row of their own in a table of trends, and how many of them make a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dumpscope.domain.records import NodeKind

Kind = Literal["module", "api", "all"]

CELLS: Final = 1000
"""Cells of a page at most, so that no reply passes 200 kB."""

_CODES: Final = {"module": int(NodeKind.MODULE), "api": int(NodeKind.API), "all": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """rank: None where the ranks share a row"""

    name: str
    kind: int
    rank: int | None


@dataclass(slots=True)
class Calls:
    """Calls in execution order, with the ranks that make them."""

    kinds: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, list[int]] = field(default_factory=dict)

    def add(self, rank: int, calls: Iterable[tuple[str, int]]) -> None:
        for name, kind in calls:
            self.kinds.setdefault(name, kind)
            at = self.ranks.setdefault(name, [])
            if rank not in at:
                at.append(rank)

    def listed(self, kind: Kind, q: str, name: str | None, *, by_rank: bool = True) -> list[Call]:
        """The rows: those of one name, or of a kind and with `q` in their name."""
        wanted = _CODES[kind]
        return [
            Call(name=one, kind=code, rank=rank)
            for one, code in self.kinds.items()
            if (name == one if name is not None else wanted in (None, code)) and q.lower() in one.lower()
            for rank in (sorted(self.ranks[one]) if by_rank else [None])
        ]


def cut(listed: Sequence[Call], after: int | None, limit: int, columns: int) -> tuple[list[tuple[int, Call]], bool]:
    """A page behind row `after`: numbered rows, and whether more follow."""
    first = 0 if after is None else after + 1
    size = max(1, min(limit, CELLS // columns))
    shown = list(enumerate(listed[first : first + size], start=first))
    return shown, first + len(shown) < len(listed)
