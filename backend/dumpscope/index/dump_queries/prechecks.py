"""Results of a pre-check: stored with the ranks of a dump, looked up by the node pairs of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, Connection, and_, delete, func, not_, or_, select

from dumpscope.domain.precheck import WORDS, Alone
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.dump_queries.nodes import find_entry
from dumpscope.index.dumps.catalogue import StoredRank, stored_ranks
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable, to_json
from dumpscope.index.store.database import Database, insert
from dumpscope.index.store.prepared import Prepared, some_keys
from dumpscope.index.trees.trees import address, shared_names
from dumpscope.texts import say

BATCH: Final = 1000
"""Rows of one transaction."""
NONE: Final = "none"
MARKED: Final = 500
"""Calls that fail alone which are listed of one step and rank."""

_ROW: Final = tables.precheck.c
_PAIR: Final = tables.node_pair.c

Side = Literal["target", "golden"]
SIDES: Final[tuple[Side, ...]] = ("target", "golden")
NodeResult = tuple[int, int, str, Alone]
"""Step, rank and name of a node, and its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCounts:
    """rows: kept; unknown: of nodes that the dump has not"""

    rows: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of a dump or one of its ranks: nodes by word, and devices they were run on; nothing where no pre-check is there."""

    counts: Mapping[str, int]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A call of a unit that fails alone. node: its address"""

    node: str
    side: Side


def put_prechecks(database: Database, dump_id: str, results: Iterable[NodeResult]) -> StoredCounts:
    """Store results of nodes in place of earlier ones. Raises NotFoundError for an unknown dump."""
    ranks = {(one.step, one.rank): one.id for one in stored_ranks(database, dump_id)}
    if not ranks:
        raise NotFoundError(say("api.dump_has_no_ranks_yet"), hint=say("api.wait_ingest_job"))
    rows = unknown = 0
    rest = iter(results)
    while batch := list(islice(rest, BATCH)):
        with database.write() as connection:
            kept = _by_key(connection, ranks, batch)
            connection.execute(delete(tables.precheck).where(_ROW.id.in_(kept)))
            rows_to_store = [(key, WORDS.index(one.word), to_json(one.document())) for key, one in kept.items()]
            if rows_to_store:
                insert(connection, tables.precheck, list(zip(*rows_to_store, strict=True)))
        rows += len(kept)
        unknown += len(batch) - len(kept)
    return StoredCounts(rows=rows, unknown=unknown)


def _by_key(connection: Connection, ranks: Mapping[tuple[int, int], int], batch: list[NodeResult]) -> dict[int, Alone]:
    """By key of the entry; of two entries of one name the first, as in a dump."""
    found: dict[int, Alone] = {}
    for place, owner in ranks.items():
        wanted = {storable([name])[0]: one for step, rank, name, one in batch if (step, rank) == place}
        if not wanted:
            continue
        entry = tables.entry.c
        named = select(func.min(entry.id), entry.name).where(
            entry.id.between(*tables.key_range(owner)), entry.name.in_(wanted), entry.kind.is_not(None)
        )
        for key, name in connection.execute(named.group_by(entry.name)):
            found[key] = wanted[name]
    return found


def delete_prechecks(database: Database, dump_id: str) -> None:
    """Delete the results of a dump's nodes."""
    for rank in stored_ranks(database, dump_id):
        with database.write() as connection:
            connection.execute(delete(tables.precheck).where(_ROW.id.between(*tables.key_range(rank.id))))


def dump_standing(database: Database, dump_id: str) -> Standing:
    owners = [rank.id for rank in stored_ranks(database, dump_id)]
    with database.read() as connection:
        return _standing(connection, owners)


def unit_standing(connection: Connection, unit: StoredUnit) -> tuple[Standing, Standing]:
    """Of the target's and of the golden's rank."""
    return _standing(connection, [unit.target]), _standing(connection, [unit.golden])


def _standing(connection: Connection, owners: Iterable[int]) -> Standing:
    counts: dict[str, int] = {}
    devices: set[str] = set()
    for owner in owners:
        mine = _ROW.id.between(*tables.key_range(owner))
        for word, count in connection.execute(select(_ROW.word, func.count()).where(mine).group_by(_ROW.word)):
            counts[WORDS[word]] = counts.get(WORDS[word], 0) + count
        first = connection.execute(select(_ROW.facts).where(mine).order_by(_ROW.id).limit(1)).scalar()
        devices |= {json.loads(first)["device"]} if first else set()
    return Standing(counts=counts, devices=tuple(sorted(devices)))


def results_of_pair(
    connection: Connection, unit: StoredUnit, pair: int
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Results of the target's and the golden's node of a node pair: documents of `Alone`, or None."""
    wanted = select(_PAIR.target, _PAIR.golden).where(_PAIR.id == tables.key(unit.id, pair))
    row = connection.execute(wanted).one()
    return _node_result(connection, unit.target, row.target), _node_result(connection, unit.golden, row.golden)


def _node_result(connection: Connection, owner: int, number: int | None) -> dict[str, Any] | None:
    if number is None:
        return None
    key = tables.key(owner, number)
    facts = connection.execute(select(_ROW.facts).where(_ROW.id == key)).scalar()
    return None if facts is None else dict(json.loads(facts))


def result_of_node(database: Database, rank: StoredRank, name: str) -> dict[str, Any] | None:
    """Result of a call of a dump: document of `Alone`, or None. Raises NotFoundError for a call that is not there."""
    with database.read() as connection:
        number = int(find_entry(connection, rank, name).id) & tables.NUMBER_MASK
        return _node_result(connection, rank.id, number)


def rank_standing(database: Database, rank: StoredRank) -> Standing:
    with database.read() as connection:
        return _standing(connection, [rank.id])


_WORDS: Final = Prepared(select(_ROW.id, _ROW.word).where(_ROW.id.in_(some_keys())))


def words_of_nodes(connection: Connection, rank: int, nodes: Iterable[int]) -> dict[int, str]:
    """Word of each of these nodes that has a result."""
    keys = [tables.key(rank, node) for node in nodes]
    return {key & tables.NUMBER_MASK: WORDS[word] for key, word in _WORDS.among(connection, keys)}


def failing_calls(connection: Connection, unit: StoredUnit) -> list[Failing]:
    """Calls that fail alone, in order, at most MARKED of a side."""
    found = []
    for side, owner in zip(SIDES, (unit.target, unit.golden), strict=True):
        rows = list(
            connection.execute(
                select(tables.node_pair)
                .where(_PAIR.id.between(*tables.key_range(unit.id)), _has_word(owner, side, ("fail",)))
                .order_by(_PAIR.id)
                .limit(MARKED)
            )
        )
        shared = shared_names(connection, unit.id, {row.name for row in rows if row.target is None})
        found += [
            Failing(node=row.name if row.target is not None else address(row.name, shared), side=side) for row in rows
        ]
    return found


def alone_clause(unit: StoredUnit, words: tuple[str, ...]) -> ColumnElement[bool]:
    """Clause over node_pair: of either side one of these is said ("none": of neither anything).

    Raises UsageError for another word."""
    for word in words:
        if word not in (*WORDS, NONE):
            raise UsageError(
                say("index.unknown_alone_search", word=f"{word!r}"),
                hint=say("domain.known", names=", ".join((*WORDS, NONE))),
            )
    sides = tuple(zip(SIDES, (unit.target, unit.golden), strict=True))
    results = or_(*(_has_word(owner, side, tuple(word for word in words if word != NONE)) for side, owner in sides))
    silent = not_(or_(*(func.coalesce(_has_word(owner, side, WORDS), False) for side, owner in sides)))
    return or_(results, silent) if NONE in words else results


def _has_word(owner: int, side: Side, words: tuple[str, ...]) -> ColumnElement[bool]:
    column = _PAIR[side]
    first, last = tables.key_range(owner)
    codes = [WORDS.index(word) for word in words]
    of_rank = select(_ROW.id - first).where(_ROW.word.in_(codes), _ROW.id.between(first, last))
    return and_(column.is_not(None), column.in_(of_rank))
