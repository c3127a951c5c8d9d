"""Notes on calls: accepted, known, a ticket, with words. Kept for a pair of dumps, not for one comparison of them: the next
comparison of the same two folders shows them again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from dumpscope.errors import LimitError, NotFoundError, UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit, dumps_digest, stored_units
from dumpscope.index.store import tables
from dumpscope.index.store.codec import storable
from dumpscope.index.store.database import Database
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.trees.trees import find_pair
from dumpscope.texts import say

Standing = Literal["accepted", "known", "ticket", "note"]
STANDINGS: Final[tuple[Standing, ...]] = ("accepted", "known", "ticket", "note")
"""accepted: the difference may be there; known: its cause is; ticket: somebody is at work on it; note: words only."""

ANY: Final = "any"

MOST: Final = 2000
"""Notes of a pair of dumps."""

_NOTE: Final = tables.note.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """node: name of the node pair, whatever step and rank; changed: seconds since the epoch"""

    node: str
    standing: Standing
    text: str
    changed: float


def list_notes(database: Database, comparison_id: str, *, seek: Seek | None = None, limit: int = 100) -> Page[Note]:
    """Notes of the comparison's pair of dumps by name; raises NotFoundError."""
    with database.read() as connection:
        pair = dumps_digest(connection, tables.comparison.c.id == comparison_id)
        statement = select(tables.note).where(_NOTE.pair == pair).order_by(_NOTE.id)
        if seek is not None:
            seek.check(int)
            statement = statement.where(_NOTE.id > seek.key[0])
        rows = list(connection.execute(statement.limit(limit + 1)))
        total = connection.execute(select(func.count()).where(_NOTE.pair == pair)).scalar_one()
    return Page(
        rows=[Note(node=row.node, standing=row.standing, text=row.text, changed=row.changed) for row in rows[:limit]],
        keys=[(row.id,) for row in rows[:limit]],
        more=len(rows) > limit,
        total=total,
    )


def put_note(database: Database, comparison_id: str, name: str, standing: Standing, text: str) -> Note:
    """Say this of the call `name` (of either side, in any step and rank) instead of what was said before.

    Raises NotFoundError for a comparison or node that there is not, LimitError past MOST notes.
    """
    units = stored_units(database, comparison_id)
    with database.write() as connection:
        pair = dumps_digest(connection, tables.comparison.c.id == comparison_id)
        node = _stored_name(connection, units, name)
        connection.execute(delete(tables.note).where(_NOTE.pair == pair, _NOTE.node == node))
        held = connection.execute(select(func.count()).where(_NOTE.pair == pair)).scalar_one()
        if held >= MOST:
            raise LimitError(
                say("index.these_two_dumps_have_notes", held=held), hint=say("index.delete_some_filter_says_more_than")
            )
        new = Note(node=node, standing=standing, text=storable([text])[0], changed=time.time())
        connection.execute(
            insert(tables.note).values(pair=pair, node=node, standing=standing, text=new.text, changed=new.changed)
        )
    return new


def note_clause(connection: Connection, unit: StoredUnit, standings: tuple[str, ...]) -> ColumnElement[bool]:
    """Clause over node_pair: one of these was said of the call ("any": whatever it was); raises UsageError for another word."""
    for word in standings:
        if word not in (*STANDINGS, ANY):
            raise UsageError(
                say("index.unknown_note_search", word=f"{word!r}"),
                hint=say("domain.known", names=", ".join((*STANDINGS, ANY))),
            )
    of_unit = select(tables.unit.c.comparison).where(tables.unit.c.id == unit.id).scalar_subquery()
    pair = dumps_digest(connection, tables.comparison.c.serial == of_unit)
    found = select(_NOTE.node).where(_NOTE.pair == pair)
    return tables.node_pair.c.name.in_(found if ANY in standings else found.where(_NOTE.standing.in_(standings)))


def delete_note(database: Database, comparison_id: str, name: str) -> None:
    """Take back what was said of a call; raises NotFoundError where nothing was."""
    with database.write() as connection:
        pair = dumps_digest(connection, tables.comparison.c.id == comparison_id)
        wanted = storable([name])[0]
        if not connection.execute(delete(tables.note).where(_NOTE.pair == pair, _NOTE.node == wanted)).rowcount:
            raise NotFoundError(
                say("index.no_note", name=f"{name!r}"), hint=say("index.get_notes_lists_them_by_targets")
            )


def _stored_name(connection: Connection, units: list[StoredUnit], name: str) -> str:
    """The name that the node's pairs are stored under."""
    for unit in units:
        try:
            found: str = find_pair(connection, unit, name).name
        except NotFoundError:
            continue
        return found
    raise NotFoundError(say("index.no_node_any_step_rank", name=f"{name!r}"), hint=say("index.get_nodes_q_searches"))
