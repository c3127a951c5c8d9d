"""Keep a comparison that was made in memory: in a server's index, or in a file of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.index.comparisons import create_comparison, store_answer
from dumpscope.index.database import Database, sqlite_url
from dumpscope.index.dumps import change_dump, create_dump
from dumpscope.index.ingest import store_dump_rank
from dumpscope.index.results import UnitSides, store_unit
from dumpscope.pipeline.local import Outcome


def keep(database: Database, outcome: Outcome, options: Options, *, name: str) -> str:
    """Store both dumps and the finished comparison; returns the comparison's id."""
    answer = outcome.answer
    ids = []
    ranks: list[list[int]] = []
    for side, dumps in (
        (answer.target, [unit.target for unit in outcome.units]),
        (answer.golden, [unit.golden for unit in outcome.units]),
    ):
        dump_id = create_dump(database, name=Path(side.path).name or side.path, path=os.path.abspath(side.path))
        ids.append(dump_id)
        ranks.append(_store_side(database, dump_id, dumps))
    comparison = create_comparison(database, name=name, target=ids[0], golden=ids[1], options=options)
    units = [
        store_unit(database, comparison, unit, UnitSides(target=target, golden=golden))
        for unit, target, golden in zip(outcome.units, *ranks, strict=True)
    ]
    store_answer(database, comparison, answer, units=units)
    return comparison


def _store_side(database: Database, dump_id: str, dumps: Sequence[RankDump]) -> list[int]:
    stored = [store_dump_rank(database, dump_id, dump) for dump in dumps]
    heads = [dump.header for dump in dumps]
    change_dump(
        database,
        dump_id,
        status="ready",
        framework=", ".join(sorted({head.framework for head in heads})),
        task=", ".join(sorted({head.task for head in heads})),
        level=", ".join(sorted({head.level for head in heads})),
        summary=", ".join(sorted({head.summary for head in heads})),
        steps=sorted({dump.ref.step for dump in dumps}),
        ranks=sorted({dump.ref.rank or 0 for dump in dumps}),
        nodes=sum(len(dump.nodes) for dump in dumps),
        items=sum(len(dump.items) for dump in dumps),
        bytes=sum(_size(dump.ref.dump_json) for dump in dumps),
        problems=[problem for dump in dumps for problem in dump.problems],
    )
    return stored


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def keep_file(file: Path, outcome: Outcome, options: Options) -> Path:
    """Store the comparison as a SQLite file, which appears only when it is whole and replaces one of the same name."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    rests = [part, *(part.with_name(part.name + suffix) for suffix in ("-wal", "-shm", ".lock", ".queue"))]
    try:
        database = Database.open(sqlite_url(part))
        try:
            keep(database, outcome, options, name=f"{outcome.answer.target.path} against {outcome.answer.golden.path}")
        finally:
            database.close()
        os.replace(part, file)
    finally:
        for rest in rests:
            rest.unlink(missing_ok=True)
    return file
