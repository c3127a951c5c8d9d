"""Read again what changed in a dump that is in the index already: new steps, new ranks, and ranks that grew."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dumpscope.domain.records import RankRef
from dumpscope.errors import Problem, UnreadableError
from dumpscope.index.dumps.catalogue import get_dump, rank_totals
from dumpscope.index.dumps.load_rank import rank_headers
from dumpscope.pipeline.server.ingest import Ingested, first_per_rank, ingest_rank, mark_ready
from dumpscope.pipeline.tasks.fan_out import Cancelled, Progress, Work, spread
from dumpscope.readers import discover
from dumpscope.texts import say
from dumpscope_format.journal import JOURNAL

CUT_SHORT: Final = "truncated"
"""Kind of the problem that the record of a rank ends early."""


def update_dump(
    work: Work,
    dump_id: str,
    *,
    steps: Collection[int] | None,
    folders: Collection[str],
    growing: bool,
    progress: Progress,
    cancelled: Cancelled,
) -> None:
    """Read these folders of ranks into the dump, which stays as it is meanwhile, and mark it ready.

    steps: that the folders belong to, so that no other step is searched; None: ranks that lie in no folder of a step
    growing: they are still being written, so that a record that ends early is no problem
    Raises UnreadableError where nothing of a new dump can be read, CancelledError.
    """
    database = work.database
    progress(0.0, say("pipeline.looking_ranks"))
    before = get_dump(database, dump_id)
    layout = discover(before.path, steps)
    refs = first_per_rank(layout.ranks)
    chosen = [ref for ref in refs if ref.folder in folders] or refs
    calls = [(dump_id, ref, False) for ref in chosen]
    found = spread(work, ingest_rank, calls, progress=progress, cancelled=cancelled)
    headers = rank_headers(database, dump_id)
    if not headers:
        problems = [*layout.problems, *(problem for one in found for problem in one.problems)]
        why = problems[0].message if problems else say("pipeline.no_rank_found")
        raise UnreadableError(say("pipeline.nothing_dump_can_read", why=why), where=before.path)
    totals = rank_totals(database, dump_id)
    mark_ready(
        database,
        dump_id,
        headers,
        steps=totals.steps,
        ranks=totals.ranks,
        nodes=totals.nodes,
        items=totals.items,
        bytes=max(before.bytes, totals.bytes),  # ranks that an older version read have no size of their own
        problems=_problems(before.problems, layout.problems, chosen, found, growing=growing),
    )


def _problems(
    before: list[Problem], layout: list[Problem], refs: list[RankRef], found: list[Ingested], *, growing: bool
) -> list[Problem]:
    """Problems of the whole dump: those of ranks that were read again give way to what was found now."""
    kept = [one for one in before if not any(_is_of(one, ref) for ref in refs)]
    new = [problem for one in found for problem in one.problems]
    if growing:
        new = [one for one in new if not (one.kind == CUT_SHORT and one.loc.endswith(JOURNAL))]
    return [*kept, *(one for one in (*layout, *new) if one not in kept)]


def _is_of(problem: Problem, ref: RankRef) -> bool:
    """Whether a problem is one of a rank's records, or says that the folder of its step holds no rank."""
    step = f"step{ref.step}"
    if not ref.label:
        return "/" not in problem.loc
    return problem.loc == step or problem.loc.startswith(f"{step}/{ref.label}/")
