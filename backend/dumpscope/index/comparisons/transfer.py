"""One comparison from one database into another: its row, its dumps as far as it compares them, its units, the notes on its pair.

Owners (ranks, units) get new ids, so keys are shifted, and text and stacks are looked up anew; all else is copied as it is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Table, insert, or_, select, update

from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.comparisons.catalogue import dumps_digest
from dumpscope.index.comparisons.joined_dumps import SIDES, joined_id
from dumpscope.index.dumps.items import BLOCKS
from dumpscope.index.store import tables
from dumpscope.index.store.codec import to_json
from dumpscope.index.store.database import Database, fetch_columns, insert as insert_columns
from dumpscope.index.store.owners import RANKS, UNITS, parent_of
from dumpscope.index.store.texts import intern_stacks, intern_texts, stacks_by_id, texts_by_id
from dumpscope.texts import say

SPAN: Final = 1 << 15
"""Keys that are read and written together."""

TEXTS: Final = {"label", "path", "type", "dtype", "shape", "value", "data_name"}
"""Columns that hold ids of texts; what is not positive stands for itself."""

Columns = Sequence[Sequence[Any]]


def copy_comparison(
    source: Database, comparison_id: str, target: Database, check: Callable[[], None] = lambda: None
) -> str:
    """Copy a finished comparison; returns its id there: the same, unless it is taken. check: called now and then, may raise

    Reads one snapshot, so what happens to the source meanwhile does not matter. An interruption leaves a part behind: for targets
    that nobody else uses. Raises NotFoundError, and ConflictError where there is no result, or one that is being changed.
    """
    with source.read() as connection:
        table = tables.comparison
        row = connection.execute(select(table).where(table.c.id == comparison_id)).one_or_none()
        if row is None:
            raise NotFoundError(
                say("index.no_comparison", comparison_id=f"{comparison_id!r}"),
                hint=say("index.get_api_comparisons_lists_them"),
            )
        if row.answer is None or row.status in ("pending", "running"):
            raise ConflictError(say("api.comparison_has_no_result", status=row.status), hint=say("api.wait_job"))
        return _Copy(connection, target, check).comparison(row)


class _Copy:
    def __init__(self, source: Connection, target: Database, check: Callable[[], None]) -> None:
        self._check = check
        self._source = source
        self._target = target
        self._texts: dict[int | None, int | None] = {}
        self._stacks: dict[int | None, int | None] = {}
        self._units: dict[int, int] = {}

    def comparison(self, row: Row[Any]) -> str:
        units = self._rows(tables.unit, tables.unit.c.comparison == row.serial)
        used = sorted({number for unit in units for number in (unit.target, unit.golden)})
        ranks = [
            rank for some in _chunks(used) for rank in self._rows(tables.rank_dump, tables.rank_dump.c.id.in_(some))
        ]
        new_id = self._free(tables.comparison, row.id)
        renamed = {joined_id(row.id, side): joined_id(new_id, side) for side in SIDES}
        serials = {row.target, row.golden, row.reference, *(parent_of(RANKS, rank) for rank in ranks)} - {None}
        dumps = {
            dump.serial: self._dump(dump, renamed, [rank for rank in ranks if parent_of(RANKS, rank) == dump.serial])
            for dump in self._rows(tables.dump, tables.dump.c.serial.in_(serials))
        }
        owners = {rank.id: self._add(tables.rank_dump, rank, dump=dumps[parent_of(RANKS, rank)]) for rank in ranks}
        sides = {side: dumps.get(getattr(row, side)) for side in ("target", "golden", "reference")}
        serial = self._add(tables.comparison, row, id=new_id, job=None, **sides)
        for unit in units:
            changed = {"target": owners[unit.target], "golden": owners[unit.golden]}
            self._units[unit.id] = self._add(tables.unit, unit, comparison=serial, **changed)
        for kind, pairs in ((RANKS.rows, owners), (UNITS.rows, self._units)):
            for old, new in pairs.items():
                for table in kind:
                    self._copy_owned_rows(table, old, new)
        self._notes(row.id)
        return new_id

    def _rows(self, table: Table, condition: Any) -> list[Row[Any]]:
        return list(self._source.execute(select(table).where(condition).order_by(*table.primary_key)))

    def _free(self, table: Table, wanted: str) -> str:
        with self._target.read() as connection:
            taken = connection.execute(select(table.c.id).where(table.c.id == wanted)).scalar() is not None
        return secrets.token_hex(5) if taken else wanted

    def _add(self, table: Table, row: Row[Any], **changed: Any) -> int:
        """Insert a row of the source under a number of its own; returns that."""
        values = {**row._mapping, **changed}
        del values[next(iter(table.primary_key)).name]
        with self._target.write() as connection:
            return int(connection.execute(insert(table).values(values)).inserted_primary_key[0])  # type: ignore[index]

    def _dump(self, row: Row[Any], renamed: dict[str, str], ranks: Sequence[Row[Any]]) -> int:
        """A dump, which holds these ranks alone."""
        held = {
            "steps": to_json(sorted({rank.step for rank in ranks})),
            "ranks": to_json(sorted({rank.rank for rank in ranks})),
            "nodes": sum(rank.nodes for rank in ranks),
            "items": sum(rank.items for rank in ranks),
        }
        new_id = renamed.get(row.id) or self._free(tables.dump, row.id)
        return self._add(tables.dump, row, id=new_id, job=None, **(held if ranks else {}))

    def _copy_owned_rows(self, table: Table, old: int, new: int) -> None:
        """All rows of an owner."""
        shift = (new - old) << tables.KEY_BITS
        chosen = ", ".join(_shifted_column(column.name, shift, new) for column in table.columns)
        names = [column.name for column in table.columns]
        first, last = tables.key_range(old)
        span = BLOCKS if table is tables.item_block else SPAN
        while True:
            self._check()
            where = f"id BETWEEN {first} AND {last} ORDER BY id LIMIT {span}"
            columns = fetch_columns(self._source, f'SELECT {chosen} FROM "{table.name}" WHERE {where}')
            if not columns:
                return
            for place, name in enumerate(names):
                columns[place] = self._translate(name, columns[place])
            with self._target.write() as connection:
                insert_columns(connection, table, columns)
            if len(columns[0]) < span:
                return
            first = columns[0][-1] - shift + 1

    def _translate(self, name: str, column: list[Any]) -> list[Any]:
        """A column with the target's numbers of texts, stacks and units."""
        if name in TEXTS:
            fresh = {number for number in column if number is not None and number > 0 and number not in self._texts}
            if fresh:
                found = texts_by_id(self._source, fresh)
                self._texts.update(zip(found, intern_texts(self._target, list(found.values())).tolist(), strict=True))
            return [self._texts.get(number, number) for number in column]
        if name == "stack":
            fresh = {number for number in column if number is not None and number not in self._stacks}
            if fresh:
                stacks = stacks_by_id(self._source, fresh)
                self._stacks.update(
                    zip(stacks, intern_stacks(self._target, list(stacks.values())).tolist(), strict=True)
                )
            return [self._stacks.get(number) for number in column]
        if name == "unit":
            return [self._units[number] for number in column]
        return column

    def _notes(self, comparison_id: str) -> None:
        """What was said of the calls of this pair of dumps; what the target says already stays."""
        pair = dumps_digest(self._source, tables.comparison.c.id == comparison_id)
        rows = self._rows(tables.note, tables.note.c.pair == pair)
        with self._target.write() as connection:
            known = set(connection.execute(select(tables.note.c.node).where(tables.note.c.pair == pair)).scalars())
            fresh = [{**row._mapping, "id": None} for row in rows if row.node not in known]
            for values in fresh:
                del values["id"]
            if fresh:
                connection.execute(insert(tables.note), fresh)


def _shifted_column(name: str, shift: int, owner: int) -> str:
    """SQL of a column whose keys belong to another owner now."""
    if name in ("id", "first_part"):
        return f"{name} + {shift}"
    if name == "parent":
        return f"CASE WHEN parent < 0 THEN {-owner} ELSE parent + {shift} END"
    return f'"{name}"'


def _chunks(numbers: Sequence[int]) -> Iterable[Sequence[int]]:
    return (numbers[start : start + 500] for start in range(0, len(numbers), 500))


def remove_unfinished(database: Database) -> None:
    """Leave only finished comparisons' work in a copy of a database: jobs that wait there belong to whoever made it."""
    with database.write() as connection:
        for table in (tables.job, tables.task, tables.webhook, tables.delivery):
            connection.execute(table.delete())
        connection.execute(update(tables.comparison).values(job=None))
        connection.execute(update(tables.dump).values(job=None))
        unfinished = or_(tables.comparison.c.answer.is_(None), tables.comparison.c.status.in_(("pending", "running")))
        connection.execute(tables.comparison.delete().where(unfinished))
