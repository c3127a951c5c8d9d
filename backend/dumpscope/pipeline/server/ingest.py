"""Take a dump into the index: find its ranks, read and store each."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dumpscope.domain.records import DumpIndex, Header, RankRef, join_words
from dumpscope.errors import CancelledError, Problem, UnreadableError
from dumpscope.index.comparisons.catalogue import is_awaited
from dumpscope.index.dumps.catalogue import change_dump
from dumpscope.index.dumps.store_rank import is_stored_as_it_is, store_dump_rank
from dumpscope.index.store.codec import PROBLEM_LIMIT
from dumpscope.index.store.database import Database
from dumpscope.jobs.executors import Processes
from dumpscope.pipeline.operators.precheck_import import import_beside
from dumpscope.pipeline.server.unstored_ranks import UnstoredRank, UnstoredRanks, put_aside, take_up
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
from dumpscope.readers import Limits, open_dump, read_rank
from dumpscope.readers.glance import look_at
from dumpscope.readers.result_tables import find_tables, write_dumps
from dumpscope.texts import say

READ: Final = 0.7
"""Share of the work at a rank that is done when it is read."""
PATIENCE, LEAST_PATIENCE = 0.5, 0.5
"""How long a rank that was read waits for the other side of a comparison: a part of the time it took, and so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What one rank held; `header` is None where nothing could be read.

    aside: it is not stored yet; stamp: for `store_dump_rank`
    """

    header: Header | None
    nodes: int
    items: int
    bytes: int
    problems: list[Problem]
    aside: bool = False
    stamp: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How far a dump is to be trusted. trusted: follow the absolute tensor folder that a dump.json names
    limit: bytes an archive may unpack to, None for the reader's own limit; problems: found before it was opened
    side: "target" or "golden" of a result table, None for a dump
    """

    trusted: bool = True
    limit: int | None = None
    problems: tuple[Problem, ...] = ()
    side: str | None = None


def ingest_dump(
    work: Work,
    dump_id: str,
    path: str,
    workdir: Path,
    *,
    source: Source = Source(),
    unstored: UnstoredRanks | None = None,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Read the dump at `path` into the index as `dump_id` and mark it ready. Doing it again replaces what is there.

    workdir: where an archive is unpacked, and the sides of a result table are written
    unstored: where comparisons wait that begin with what was read, before it is stored
    Raises UnreadableError where nothing of it is a dump, LimitError, CancelledError.
    """
    progress(0.0, say("pipeline.looking_ranks"))
    limits = Limits() if source.limit is None else Limits(bytes=source.limit)
    named = path
    if source.side is not None:
        opened = write_dumps(find_tables(path), workdir)
        path = str(opened.target if source.side == "target" else opened.golden)
    layout = open_dump(path, workdir, limits=limits)
    refs = first_per_rank(layout.ranks)
    if unstored is not None and len(refs) == 1 and isinstance(work.executor, Processes):
        kept = DumpIndex(root=layout.root, ranks=refs, problems=[])
        found = [_ingest_only(work, dump_id, kept, unstored, source.trusted, progress, cancelled)]
    else:
        calls = [(dump_id, ref, source.trusted) for ref in refs]
        found = spread(work, ingest_rank, calls, progress=progress, cancelled=cancelled)
    headers = [entry.header for entry in found if entry.header is not None]
    problems = [*source.problems, *layout.problems, *(problem for entry in found for problem in entry.problems)]
    if not headers:
        why = problems[0].message if problems else say("pipeline.no_rank_found")
        raise UnreadableError(say("pipeline.nothing_dump_can_read", why=why), where=named)
    read = [ref for ref, entry in zip(refs, found, strict=True) if entry.header is not None]
    kept = DumpIndex(root=layout.root, ranks=read, problems=[])
    problems += import_beside(work.database, dump_id, path)
    mark_ready(
        work.database,
        dump_id,
        headers,
        steps=kept.steps,
        ranks=kept.rank_numbers,
        nodes=sum(entry.nodes for entry in found),
        items=sum(entry.items for entry in found),
        bytes=sum(entry.bytes for entry in found),
        problems=problems,
    )


def mark_ready(database: Database, dump_id: str, headers: Collection[Header], **totals: Any) -> None:
    """Mark a dump ready, with what the headers of its ranks say together. totals: its other columns"""
    change_dump(
        database,
        dump_id,
        status="ready",
        error=None,
        framework=join_words(header.framework for header in headers),
        task=join_words(header.task for header in headers),
        level=join_words(header.level for header in headers),
        summary=join_words(header.summary for header in headers),
        **totals,
    )


def _ingest_only(
    work: Work,
    dump_id: str,
    layout: DumpIndex,
    unstored: UnstoredRanks,
    trusted: bool,
    progress: Progress,
    cancelled: Cancelled,
) -> Ingested:
    """Read the only rank of a dump and store it; where a comparison waits for it, when that has begun."""
    (ref,) = layout.ranks
    with ExitStack() as stack:
        file: Path | None = None
        with suppress(OSError):  # no room for temporary files
            file = stack.enter_context(TemporaryFolder("ranks")).path / "rank"
        begun = time.monotonic()
        (found,) = spread(work, ingest_rank, [(dump_id, ref, trusted, file)], progress=progress, cancelled=cancelled)
        if not found.aside or file is None:
            return found
        patience = LEAST_PATIENCE + PATIENCE * (time.monotonic() - begun)
        stored: int | None = None
        try:
            unstored.offer(dump_id, UnstoredRank(layout=layout, file=file), patience=patience, cancelled=cancelled)
            (stored,) = spread(
                work, store_aside, [(dump_id, ref, file, found.stamp, found.bytes)],
                progress=lambda done, text: progress(READ + done * (1 - READ), text), cancelled=cancelled,
            )  # fmt: skip
        finally:
            unstored.withdraw(dump_id, stored)
    return found


def ingest_rank(
    database: Database,
    dump_id: str,
    ref: RankRef,
    trusted: bool,
    aside: Path | None = None,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> Ingested:
    """Read and store one rank; one that cannot be read at all is a problem, so that the others stay usable.

    aside: file into which it is written instead of being stored, where a comparison waits for it
    """
    where = say("pipeline.step", step=ref.step, label=ref.label or "rank")
    progress(0.0, say("pipeline.reading", where=where))
    sight = look_at(ref.folder)  # before the records: what is written meanwhile gives another stamp
    stamp = None if sight is None else sight.stamp
    size = _size(ref)
    try:
        dump = read_rank(ref, follow_stored_path=trusted)
    except UnreadableError as error:
        problem = Problem(loc=error.where or ref.dump_json, kind="unreadable", message=str(error))
        return Ingested(header=None, nodes=0, items=0, bytes=size, problems=[problem])
    if cancelled():
        raise CancelledError(say("pipeline.cancelled"))
    put = (
        aside is not None
        and len(dump.nodes) > 0
        and is_awaited(database, dump_id)
        and is_stored_as_it_is(dump)
        and put_aside(dump, aside)
    )
    if not put:
        progress(READ, say("pipeline.storing_2", where=where))
        store_dump_rank(database, dump_id, dump, stamp=stamp, size=size)
    return Ingested(
        header=dump.header,
        nodes=len(dump.nodes),
        items=len(dump.items),
        bytes=size,
        problems=dump.problems[:PROBLEM_LIMIT],
        aside=put,
        stamp=stamp,
    )


def store_aside(
    database: Database,
    dump_id: str,
    ref: RankRef,
    file: Path,
    stamp: str | None,
    size: int,
    *,
    progress: Progress,
    cancelled: Cancelled,
) -> int:
    """Store a rank that was put aside; returns its rank_dump id. stamp, size: see `store_dump_rank`"""
    progress(0.0, say("pipeline.storing_2", where=say("pipeline.step", step=ref.step, label=ref.label or "rank")))
    return store_dump_rank(database, dump_id, take_up(file), stamp=stamp, size=size)


def first_per_rank(refs: list[RankRef]) -> list[RankRef]:
    """One place per step and rank: the first one named, which discovery puts the best one."""
    chosen: dict[tuple[int, int], RankRef] = {}
    for ref in refs:
        chosen.setdefault((ref.step, ref.number), ref)
    return list(chosen.values())


def _size(ref: RankRef) -> int:
    total = 0
    for file in (ref.dump_json, ref.stack_json, ref.construct_json):
        try:
            total += os.path.getsize(file) if file else 0
        except OSError:
            continue
    return total
