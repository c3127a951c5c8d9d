"""Save a comparison made in memory, or a copy of a stored one, in a database or as a result file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dumpscope.domain.options import Options
from dumpscope.domain.records import Header, RankDump, join_words
from dumpscope.domain.result import Answer
from dumpscope.errors import Problem
from dumpscope.index.comparisons.catalogue import create_comparison, store_answer
from dumpscope.index.comparisons.store_results import UnitSides, store_unit
from dumpscope.index.comparisons.transfer import copy_comparison
from dumpscope.index.dumps.catalogue import change_dump, create_dump
from dumpscope.index.dumps.store_rank import store_dump_rank
from dumpscope.index.pair_queries.collectives import store_collectives
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.pipeline.compare.in_process import Outcome


def save_comparison(database: Database, outcome: Outcome, options: Options, *, name: str) -> str:
    """Store both dumps and the finished comparison; returns the comparison's id."""
    answer = outcome.answer
    sides = [_Side(database, side.path) for side in (answer.target, answer.golden)]
    comparison = create_comparison(
        database,
        name=name,
        target=sides[0].id,
        golden=sides[1].id,
        reference=_reference(database, answer),
        options=options,
    )
    units = {}
    for unit in outcome.units:
        stored = UnitSides(target=sides[0].store(unit.target), golden=sides[1].store(unit.golden))
        units[unit.step, unit.rank] = store_unit(database, comparison, unit, stored)
    for side in sides:
        side.close()
    store_collectives(database, units, outcome.collectives)
    store_answer(database, comparison, answer, units=list(units.values()))
    return comparison


def _reference(database: Database, answer: Answer) -> str | None:
    """The reference as a dump with a name only: of it, the distances alone are stored."""
    if answer.reference is None:
        return None
    side = answer.reference.side
    dump_id = create_dump(database, name=Path(side.path).name or side.path, path=os.path.abspath(side.path))
    words = {"framework": side.framework, "task": side.task, "level": side.level}
    change_dump(database, dump_id, status="ready", **words, steps=side.steps, ranks=side.ranks)
    return dump_id


class _Side:
    """One dump of a comparison, stored rank by rank."""

    def __init__(self, database: Database, path: str) -> None:
        self._database = database
        self._heads: list[Header] = []
        self._places: list[tuple[int, int]] = []
        self._problems: list[Problem] = []
        self._nodes = self._items = self._bytes = 0
        self.id = create_dump(database, name=Path(path).name or path, path=os.path.abspath(path))

    def store(self, dump: RankDump) -> int:
        self._heads.append(dump.header)
        self._places.append((dump.ref.step, dump.ref.number))
        self._problems += dump.problems
        self._nodes += len(dump.nodes)
        self._items += len(dump.items)
        self._bytes += _size(dump.ref.dump_json)
        return store_dump_rank(self._database, self.id, dump)

    def close(self) -> None:
        """Mark the dump as complete."""
        words = {
            name: join_words(getattr(head, name) for head in self._heads)
            for name in ("framework", "task", "level", "summary")
        }
        change_dump(
            self._database,
            self.id,
            status="ready",
            **words,
            steps=sorted({step for step, _ in self._places}),
            ranks=sorted({rank for _, rank in self._places}),
            nodes=self._nodes,
            items=self._items,
            bytes=self._bytes,
            problems=self._problems,
        )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def save_file(file: Path, outcome: Outcome, options: Options) -> Path:
    """Save the comparison as a SQLite file. It appears only when it is complete, and replaces one of the same name."""
    with _whole(file) as database:
        save_comparison(
            database, outcome, options, name=f"{outcome.answer.target.path} against {outcome.answer.golden.path}"
        )
    return file


def save_copy(file: Path, source: Database, comparison_id: str, check: Callable[[], None]) -> Path:
    """The same file of a stored comparison, with the notes on its pair of dumps. check: called now and then

    Raises as `copy_comparison`, and what `check` raises.
    """
    with _whole(file) as database:
        copy_comparison(source, comparison_id, database, check)
    return file


@contextmanager
def _whole(file: Path) -> Iterator[Database]:
    """An empty database that becomes `file` when the block ends well."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    rests = [part, *(part.with_name(part.name + suffix) for suffix in ("-wal", "-shm", ".lock", ".queue"))]
    try:
        database = Database.open(sqlite_url(part))
        try:
            yield database
        finally:
            database.close()
        os.replace(part, file)
    finally:
        for rest in rests:
            rest.unlink(missing_ok=True)
