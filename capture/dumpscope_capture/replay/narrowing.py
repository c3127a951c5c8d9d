"""Finds the smallest part of a region's graph whose result a backend gets wrong, by halving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dumpscope_capture.replay.judging import ERROR, Judgement
from dumpscope_capture.replay.regions import EAGER, Ran, Region, excuse, verdict_of


@dataclass
class Check:
    """What a piece gives with a backend. error: why it ended early"""

    judged: dict[str, Judgement] = field(default_factory=dict)
    error: str = ""

    @property
    def wrong(self) -> bool:
        return bool(self.error) or verdict_of(self.judged) == ERROR


@dataclass
class Narrowed:
    """The operations from `first` up to `last` are wrong together, and no fewer at either end.

    places: of these operations; check: what they give alone, from inputs of eager code; tried: number of pieces run
    """

    backend: str
    places: list[int]
    check: Check
    tried: int

    def document(self, region: Region) -> dict[str, Any]:
        graph = region.graph
        return {
            "backend": self.backend,
            "operators": [
                {
                    "name": graph.nodes[place]["name"],
                    "target": graph.nodes[place]["target"],
                    "expression": graph.expression(place),
                    "place": graph.frame(place),
                }
                for place in self.places
            ],
            "of": len(graph.nodes),
            "tried": self.tried,
            "error": self.check.error,
            "items": {item: one.document() for item, one in self.check.judged.items()},
        }


def check(region: Region, first: int, last: int, backend: str) -> Check:
    """Run the operations from `first` up to `last` with a backend, from the inputs that they have in eager code."""
    piece = region.cut(first, last)
    if not piece.nodes:
        return Check()
    given = region.given(piece)
    eager = region.run(piece, given, EAGER)
    if eager.error:
        return Check()
    right, moved = region.references(piece, given)
    if right.error:
        right, moved = eager, Ran()
    plain = region.judge(piece, eager.items, right, moved)
    if backend == EAGER:
        return Check(plain)
    ran = region.run(piece, given, backend)
    if ran.error:
        return Check(error=ran.error)
    return Check(
        {item: excuse(one, plain.get(item)) for item, one in region.judge(piece, ran.items, right, moved).items()}
    )


def narrow(region: Region, backend: str) -> Narrowed | None:
    """The smallest stretch of operations that a backend gets wrong, None where no part alone is wrong.

    The whole graph is known to be wrong. The end of the stretch is found first: where the operations up to it become wrong.
    """
    count = len(region.graph.nodes)
    if backend == EAGER:
        return _lone(region)
    kept: dict[tuple[int, int], Check] = {}

    def wrong(first: int, last: int) -> bool:
        kept[first, last] = check(region, first, last, backend)
        return kept[first, last].wrong

    if region.graph.nests or not wrong(0, count):
        return None
    last = _halve(0, count, lambda place: wrong(0, place))
    first = last - 1
    if not wrong(first, last):
        first = last - _halve(1, last, lambda length: wrong(last - length, last))
    found = kept.get((first, last)) or check(region, first, last, backend)
    return Narrowed(backend=backend, places=_places(region, first, last), check=found, tried=len(kept))


def _halve(right: int, wrong: int, is_wrong: Callable[[int], bool]) -> int:
    """A number that is wrong while the one below it is right."""
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(middle):
            wrong = middle
        else:
            right = middle
    return wrong


def _lone(region: Region) -> Narrowed | None:
    """The first operation that is wrong alone in eager code."""
    for place in range(len(region.graph.nodes)):
        found = check(region, place, place + 1, EAGER)
        if found.wrong:
            return Narrowed(backend=EAGER, places=_places(region, place, place + 1), check=found, tried=place + 1)
    return None


def _places(region: Region, first: int, last: int) -> list[int]:
    return [place for place in region.cut(first, last).nodes if region.graph.nodes[place]["op"] != "get_attr"]
