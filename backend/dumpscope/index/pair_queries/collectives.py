"""Communications of a comparison, each with every rank's part. Those of a step lie with the step's first unit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select

from dumpscope.analysis.ranks.collectives import Collective, Part
from dumpscope.analysis.ranks.messages import Half
from dumpscope.domain.facts import VERDICT_WORDS, Verdict
from dumpscope.errors import NotFoundError
from dumpscope.index.comparisons.catalogue import StoredUnit, stored_units, units_beside
from dumpscope.index.pair_queries.node_pairs import word_codes
from dumpscope.index.store import tables
from dumpscope.index.store.codec import score, to_json
from dumpscope.index.store.database import Database, insert
from dumpscope.index.store.owners import BATCH
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.store.prepared import Prepared, number_named
from dumpscope.texts import say

PARTS: Final = 64
"""Most parts listed with a communication, by rank; `list_parts` pages through all."""
OF_NODE: Final = 8
"""Most communications listed with a node: a batched call may take part in many."""

PAGE_BYTES: Final = 180_000
PART_BYTES: Final = 150
"""A page ends before about so many bytes, so that parts which would be cut off again are not read."""

_BAD: Final = ("no", "warning")

_ONE: Final = tables.collective.c
_PART: Final = tables.collective_part.c


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfRow:
    verdict: str
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """One rank's part. pair: node pair number; gave, took: None where it gives or takes nothing"""

    rank: int
    node: str
    pair: int
    gave: HalfRow | None
    took: HalfRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """id: its key; call: how many of its kind the group had before; ranks: of the group; missing: those that have no part
    faulty: all inputs agree and a result does not; parts: at most PARTS of part_count"""

    id: int
    step: int
    api: str
    call: int
    ranks: list[int]
    missing: list[int]
    verdict: str
    faulty: bool
    parts: list[PartRow]
    part_count: int


def store_collectives(database: Database, units: Mapping[tuple[int, int], int], found: Iterable[Collective]) -> None:
    """Put these in place of what the units have. units: (step, rank) -> unit id"""
    owners: dict[int, int] = {}
    for (step, _), unit in sorted(units.items()):
        owners.setdefault(step, unit)
    for table in (tables.collective_part, tables.collective):
        for owner in owners.values():
            with database.write() as connection:
                connection.execute(delete(table).where(table.c.id.between(*tables.key_range(owner))))
    by_step: dict[int, list[Collective]] = {}
    for one in found:
        by_step.setdefault(one.step, []).append(one)
    for step, ones in by_step.items():
        parts: list[tuple[Any, ...]] = []
        rows: list[tuple[Any, ...]] = []
        for number, one in enumerate(ones):
            key = tables.key(owners[step], number)
            first = tables.key(owners[step], len(parts))
            parts += [
                (tables.key(owners[step], len(parts) + place), units[step, part.rank], *_part(part))
                for place, part in enumerate(one.parts)
            ]
            ranks, missing = to_json(list(one.ranks)), to_json(list(one.missing))
            verdict = max((_worst(part) for part in one.parts), default=int(Verdict.NA))
            rows.append((key, one.api, one.call, ranks, missing, verdict, int(one.faulty), first, len(one.parts)))
        for table, lines in ((tables.collective, rows), (tables.collective_part, parts)):
            for start in range(0, len(lines), BATCH):
                with database.write() as connection:
                    insert(
                        connection, table, [list(column) for column in zip(*lines[start : start + BATCH], strict=True)]
                    )


def list_collectives(
    database: Database,
    comparison_id: str,
    step: int,
    *,
    api: str = "",
    verdicts: Sequence[str] = (),
    rank: int | None = None,
    seek: Seek | None = None,
    total: int | None = None,
    limit: int = 100,
) -> Page[CollectiveRow]:
    """A page of a step's communications in the order that they force. rank: only those with a part of it"""
    units = [unit for unit in stored_units(database, comparison_id) if unit.step == step]
    if not units:
        raise NotFoundError(say("index.comparison_has_no_step", step=step))
    where: list[ColumnElement[bool]] = [_ONE.id.between(*tables.key_range(units[0].id))]
    if api:
        where.append(_ONE.api == api)
    if verdicts:
        where.append(_ONE.verdict.in_(word_codes(tuple(verdicts), VERDICT_WORDS, "verdict")))
    if rank is not None:
        own = next((unit.id for unit in units if unit.rank == rank), -1)
        has = select(_PART.id).where(
            _PART.unit == own, _PART.id.between(_ONE.first_part, _ONE.first_part + _ONE.part_count - 1)
        )
        where.append(has.exists())
    with database.read() as connection:
        if total is None:
            total = int(
                connection.execute(select(func.count()).select_from(tables.collective).where(*where)).scalar_one()
            )
        if seek is not None:
            seek.check(int)
            where.append(_ONE.id > seek.key[0])
        rows = connection.execute(select(tables.collective).where(*where).order_by(_ONE.id).limit(limit + 1)).all()
        room = PAGE_BYTES
        fitting = 0
        for row in rows[:limit]:
            room -= len(row.ranks) + len(row.missing) + PART_BYTES * min(row.part_count, PARTS)
            if room < 0 and fitting:
                break
            fitting += 1
        page = _rows(connection, units, rows[:fitting])
    return Page(rows=page, keys=[(row.id,) for row in page], more=len(rows) > fitting, total=total)


_PARTS_OF_NODE: Final = Prepared(
    select(_PART.id)
    .where(_PART.unit == number_named("unit"), _PART.node == number_named("node"))
    .order_by(_PART.id)
    .limit(OF_NODE)
)


def collectives_of(connection: Connection, unit: StoredUnit, pair: int) -> list[CollectiveRow]:
    """The communications that a node pair takes part in, at most OF_NODE."""
    keys = _PARTS_OF_NODE.column(connection, unit=unit.id, node=pair)
    if not keys:
        return []
    inside = or_(*(and_(_ONE.first_part <= key, _ONE.first_part + _ONE.part_count > key) for key in keys))
    near = _ONE.id.between(*tables.key_range(keys[0] >> tables.KEY_BITS))
    rows = connection.execute(select(tables.collective).where(near, inside).order_by(_ONE.id)).all()
    return _rows(connection, units_beside(connection, unit), rows)


def sender(connection: Connection, unit: StoredUnit, pair: int) -> tuple[StoredUnit, int] | None:
    """Who fed a communication call with what differs: the first other rank's unit and node pair."""
    found = collectives_of(connection, unit, pair)
    ranks = {one.rank: one for one in units_beside(connection, unit)} if found else {}
    for row in found:
        own = [part for part in row.parts if part.rank == unit.rank and part.pair == pair]
        if not any(part.took is not None and part.took.verdict in _BAD for part in own):
            continue
        for part in row.parts:
            if part.rank in ranks and part.rank != unit.rank and part.gave is not None and part.gave.verdict in _BAD:
                return ranks[part.rank], part.pair
    return None


def list_parts(
    database: Database, comparison_id: str, collective: int, *, seek: Seek | None = None, limit: int = 100
) -> Page[PartRow]:
    """A page of a communication's parts, by rank. Raises NotFoundError."""
    units = {unit.id: unit for unit in stored_units(database, comparison_id)}
    owner = collective >> tables.KEY_BITS
    with database.read() as connection:
        row = connection.execute(select(tables.collective).where(_ONE.id == collective)).one_or_none()
        if row is None or owner not in units:
            raise NotFoundError(
                say("index.no_communication_comparison", collective=collective),
                hint=say("index.get_collectives_lists_them"),
            )
        first = row.first_part
        if seek is not None:
            seek.check(int)
            first = max(first, seek.key[0] + 1)
        last = row.first_part + row.part_count - 1
        parts = _parts(connection, list(units.values()), first, min(last, first + limit - 1))
    keys = [(key,) for key in parts]
    return Page(rows=list(parts.values()), keys=keys, more=bool(keys) and keys[-1][0] < last, total=row.part_count)


def _rows(connection: Connection, units: Sequence[StoredUnit], rows: Sequence[Any]) -> list[CollectiveRow]:
    found = []
    for row in rows:
        parts = _parts(connection, units, row.first_part, row.first_part + min(row.part_count, PARTS) - 1)
        found.append(
            CollectiveRow(
                id=row.id,
                step=units[0].step,
                api=row.api,
                call=row.call,
                ranks=json.loads(row.ranks),
                missing=json.loads(row.missing),
                verdict=VERDICT_WORDS[row.verdict],
                faulty=bool(row.faulty),
                parts=list(parts.values()),
                part_count=row.part_count,
            )
        )
    return found


def _parts(connection: Connection, units: Sequence[StoredUnit], first: int, last: int) -> dict[int, PartRow]:
    """Key -> part."""
    ranks = {unit.id: unit.rank for unit in units}
    node = tables.node_pair.c
    statement = (
        select(tables.collective_part, node.name)
        .join(tables.node_pair, node.id == _PART.unit * (1 << tables.KEY_BITS) + _PART.node)
        .where(_PART.id.between(first, last))
        .order_by(_PART.id)
    )
    return {
        row.id: PartRow(
            rank=ranks.get(row.unit, -1),
            node=row.name,
            pair=row.node,
            gave=_half(row.gave, row.gave_severity),
            took=_half(row.took, row.took_severity),
        )
        for row in connection.execute(statement)
    }


def _half(verdict: int | None, severity: float) -> HalfRow | None:
    return None if verdict is None else HalfRow(verdict=VERDICT_WORDS[verdict], score=score(severity))


def _part(part: Part) -> tuple[Any, ...]:
    """Columns of a part behind its key and unit."""
    gave, took = part.message.given, part.message.taken
    return (part.message.pair, *_columns(gave), *_columns(took))


def _columns(half: Half | None) -> tuple[int | None, float]:
    return (None, -1.0) if half is None else (half.verdict, -1.0 if isnan(half.score) else half.score)


def _worst(part: Part) -> int:
    halves = [half.verdict for half in (part.message.given, part.message.taken) if half is not None]
    return max(halves, default=int(Verdict.NA))
