"""Which steps, ranks, calls and rows of the tree a file holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.api.one_file.asking import Held

MOST_PLACES: Final = 12
"""Steps and ranks: those of causes first."""
MOST_CALLS: Final = 400
"""Calls of all steps and ranks together."""
AROUND: Final = 21
"""Calls in call order around a suspect, itself included."""
NEIGHBOURS: Final = 8
"""Calls on each side of a suspect's data flow."""
WORST: Final = 150
"""Calls of the worst classes."""
TREE_ROWS: Final = 5000
CHILDREN: Final = 100
"""Rows of the tree that are taken of one module at once."""
PAGE: Final = 200

Row = dict[str, Any]
"""A row of the list of calls, as it is sent."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One step and rank."""

    step: int
    rank: int

    @property
    def query(self) -> dict[str, int]:
        return {"step": self.step, "rank": self.rank}


@dataclass(slots=True)
class Branch:
    """Children of a module: those that are here by their places, and the number of all."""

    total: int
    rows: dict[int, Row] = field(default_factory=dict)

    def spans(self) -> list[dict[str, Any]]:
        """Runs of rows without a gap: place of the first, and the rows."""
        found: list[dict[str, Any]] = []
        for place in sorted(self.rows):
            if not found or found[-1]["start"] + len(found[-1]["items"]) != place:
                found.append({"start": place, "items": []})
            found[-1]["items"].append(self.rows[place])
        return found


def choose_units(summary: Mapping[str, Any]) -> list[Unit]:
    """Steps and ranks in the order in which they matter: with an origin, with the first No, with any No, others."""
    known = {Unit(one["step"], one["rank"]): one for one in summary["units"]}
    first = [Unit(one["step"], one["rank"]) for one in summary["origins"]]
    if summary["first_no"] is not None:
        first.append(Unit(summary["first_no"]["step"], summary["first_no"]["rank"]))
    bad = sorted(known, key=lambda unit: (not known[unit]["origins"], not known[unit]["no"]))
    wanted = [unit for unit in dict.fromkeys([*first, *bad]) if unit in known]
    return wanted[:MOST_PLACES]


def shares(units: list[Unit]) -> list[int]:
    """How many calls each of them may have: the first one half of all, if there are several."""
    if len(units) < 2:
        return [MOST_CALLS] * len(units)
    return [MOST_CALLS // 2, *[MOST_CALLS // 2 // (len(units) - 1)] * (len(units) - 1)]


def choose_calls(held: Held, top: str, unit: Unit, suspects: list[str], most: int) -> tuple[list[Row], int]:
    """Calls of a unit, those that matter most first, and the number of all calls.

    All if there are no more than `most`. Else suspects, calls around them in call order and in their data flow, calls of the
    worst classes, and calls with the largest errors.
    """
    first = held.look(f"{top}/nodes", **unit.query, at=0, limit=PAGE)
    total = int(first["total"])
    found: dict[str, Row] = {}
    for row in _by_weight(held, top, unit, suspects) if total > most else _all(held, top, unit, total):
        found.setdefault(row["address"], row)
        if len(found) == most:
            break
    return list(found.values()), total


def _all(held: Held, top: str, unit: Unit, total: int) -> Iterator[Row]:
    place = 0
    while place < total:
        items = held.look(f"{top}/nodes", **unit.query, at=place, limit=PAGE)["items"]
        if not items:
            return
        yield from items
        place += len(items)


def _by_weight(held: Held, top: str, unit: Unit, suspects: list[str]) -> Iterator[Row]:
    for name in suspects:
        yield from _page(held, top, unit, around=name, limit=1)
    for name in suspects:
        yield from _page(held, top, unit, around=name, limit=AROUND)
    for name in suspects:
        yield from neighbours(held.look(f"{top}/nodes/{name}/flow", **unit.query))
    yield from _page(held, top, unit, sort="-class", limit=WORST)
    yield from _page(held, top, unit, sort="-out_score", limit=WORST)
    yield from _page(held, top, unit, at=0, limit=PAGE)


def _page(held: Held, top: str, unit: Unit, **query: Any) -> list[Row]:
    page = held.look(f"{top}/nodes", **unit.query, **query)
    return [] if page is None else list(page["items"])


def neighbours(flow: Mapping[str, Any] | None) -> Iterator[Row]:
    """Calls that made what a call received, and calls that received what it made."""
    if flow is not None:
        yield from [one["producer"] for one in flow["inputs"] if one["producer"]][:NEIGHBOURS]
        yield from [one["consumer"] for one in flow["consumers"]][:NEIGHBOURS]


def choose_tree(held: Held, top: str, unit: Unit, names: Iterable[str]) -> dict[int, Branch]:
    """Children of modules by their row, -1 the top: first the ways to these calls, then level by level from the top."""
    branches: dict[int, Branch] = {}
    seen: set[str] = set()
    room = TREE_ROWS

    def add(parent: int | None, page: Mapping[str, Any]) -> None:
        nonlocal room
        branch = branches.setdefault(-1 if parent is None else parent, Branch(int(page["total"])))
        for place, row in enumerate(page["items"], start=int(page["start"] or 0)):
            if place not in branch.rows and room > 0:
                branch.rows[place] = row
                seen.add(row["address"])
                room -= 1

    add(None, held.look(f"{top}/tree", **unit.query, limit=CHILDREN))
    for name in names:
        if name in seen:
            continue
        way = held.look(f"{top}/tree/levels", **unit.query, reveal=name, **{"from": 0})
        for level in [] if way is None else way["levels"]:
            add(level["parent"], level)
        if room <= 0:
            return branches
    parents = [-1]
    for parent in parents:
        for row in list(branches[parent].rows.values()) if parent in branches else []:
            if not row["children"]:
                continue
            parents.append(row["entry"])
            if row["entry"] not in branches or min(branches[row["entry"]].rows, default=1):
                add(row["entry"], held.look(f"{top}/tree", **unit.query, parent=row["entry"], limit=CHILDREN))
            if room <= 0:
                return branches
    return branches
