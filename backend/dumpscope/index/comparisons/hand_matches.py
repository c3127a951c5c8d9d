"""State of each match made by hand: applied in the stored result or not yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import Connection, or_, select

from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable
from dumpscope.index.store.database import CHUNK
from dumpscope.match.by_hand import Edit

EditState = Literal["applied", "waiting", "overruled", "absent"]
"""waiting: for the comparison to be made again; overruled: a later edit is about the same node; absent: this step and rank lacks
a node that it names"""

_PAIR = tables.node_pair.c


def edit_states(connection: Connection, unit: StoredUnit, edits: Sequence[Edit]) -> list[EditState]:
    """One state per edit, in their order."""
    held = _partners(connection, unit, sorted({name for edit in edits for name in _names(edit) if name is not None}))
    overruling: tuple[set[str], set[str]] = (set(), set())
    states: list[EditState] = []
    for edit in reversed(edits):
        names = _names(edit)
        if any(name in later for name, later in zip(names, overruling, strict=True)):
            states.append("overruled")
        elif any(name is not None and name not in side for name, side in zip(names, held, strict=True)):
            states.append("absent")
        else:
            there = [side[name] for name, side in zip(names, held, strict=True) if name is not None]
            states.append("applied" if there[0] == (edit.golden if edit.join else None) else "waiting")
        for name, later in zip(names, overruling, strict=True):
            if name is not None:
                later.add(name)
    return states[::-1]


def _names(edit: Edit) -> tuple[str | None, str | None]:
    return edit.target, edit.golden


def _partners(
    connection: Connection, unit: StoredUnit, names: Sequence[str]
) -> tuple[dict[str, str | None], dict[str, str | None]]:
    """(target node -> its partner, golden node -> its partner), None where it has none; of these names at least."""
    first, last = tables.key_range(unit.id)
    stored = dict(zip(storable(names), names, strict=True))
    keys = list(stored)
    by_target: dict[str, str | None] = {}
    by_golden: dict[str, str | None] = {}
    for start in range(0, len(keys), CHUNK):
        some = keys[start : start + CHUNK]
        found = select(_PAIR.name, _PAIR.golden_name, _PAIR.target, _PAIR.golden).where(
            _PAIR.id.between(first, last), or_(_PAIR.name.in_(some), _PAIR.golden_name.in_(some))
        )
        for row in connection.execute(found):
            target = None if row.target is None else stored.get(row.name, row.name)
            golden = None if row.golden is None else row.name if row.golden_name is None else row.golden_name
            golden = golden if golden is None else stored.get(golden, golden)
            if target is not None:
                by_target[target] = golden
            if golden is not None:
                by_golden[golden] = target
    return by_target, by_golden
