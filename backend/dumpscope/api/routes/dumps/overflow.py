"""NaN, infinities and saturation in one dump: where they began, and every call that they reached."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import AliasChoices, BeforeValidator, Field

from dumpscope.analysis.overflow.births import PARTS, Level, Part
from dumpscope.api.models.base import Page, Phrase, Wire
from dumpscope.api.parameters import Cursor, Id, Limit, Rank, Step, words
from dumpscope.api.replies import after, page_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.errors import UsageError
from dumpscope.index.dumps.catalogue import find_rank, get_dump
from dumpscope.index.store.page import Page as Rows
from dumpscope.pipeline.server.overflow_cache import StoredOverflow, stored_overflow
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])

MOST_ENTRIES: Final = 500

Node = Annotated[str | None, Query(max_length=4000, description="Only this call.")]
Entries = Annotated[list[str], Query(max_length=500, description="`entry` of tree rows; several times or with commas.")]
Parts = Annotated[list[str], Query(description="Any of these parts; several times or with commas.")]


Names = Annotated[list[str], BeforeValidator(list)]


class OverflowFinding(Wire):
    """A call with a number that is not finite, or at the limit of its dtype. `inputs`, `outputs`: `nan`, `inf`, `-inf`,
    `limit`, `-limit`; `items`: the records that hold them; `forward`: the call whose backward this is, or empty."""

    ordinal: int
    node: str
    part: Part
    level: Level
    inputs: Names
    outputs: Names
    items: Names
    evidence: str
    evidence_said: Annotated[list[Phrase], Field(validation_alias=AliasChoices("evidence_said", "said"))]
    advice: str
    advice_said: Annotated[list[Phrase], Field(validation_alias=AliasChoices("advice_said", "advised"))]
    forward: str


class OverflowBelow(Wire):
    """A row of the module tree with such a number in itself or below it: in `calls` calls, `part` of the worst."""

    entry: int
    part: Part
    calls: int


class OverflowRows(Wire):
    """Rows without such a number are left out."""

    items: list[OverflowBelow]


class OverflowSummary(Wire):
    """`first`: the first number that is not intended; `counts`: calls by part; `unknown`: calls without extrema."""

    step: int
    rank: int
    first: OverflowFinding | None
    counts: dict[Part, int]
    checked: int
    unknown: int


@router.get("/dumps/{dump_id}/overflow", response_model=OverflowSummary)
def summary(dump_id: Id, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """Where the first NaN, infinity or clipped number was born."""
    found = _found(state, dump_id, step, rank).found
    return reply(
        OverflowSummary(
            step=found.step,
            rank=found.rank,
            first=None if found.first is None else OverflowFinding.model_validate(found.first),
            counts=found.parts,
            checked=found.checked,
            unknown=found.unknown,
        )
    )


@router.get("/dumps/{dump_id}/findings", response_model=Page[OverflowFinding])
def findings(
    dump_id: Id,
    state: Shared,
    step: Step = None,
    rank: Rank = None,
    node: Node = None,
    part: Parts = [],  # noqa: B006  (FastAPI copies defaults)
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Calls with such a number, in the order in which they ended."""
    wanted = words(part)
    if unknown := [word for word in wanted if word not in PARTS]:
        raise UsageError(
            say("api.no_part_called", unknown=f"{unknown[0]!r}"), hint=say("api.parts", names=", ".join(PARTS))
        )
    found = _found(state, dump_id, step, rank).found.findings
    rows = [one for one in found if (not wanted or one.part in wanted) and node in (None, one.node)]
    start = after(cursor)
    rest = [one for one in rows if start is None or one.ordinal > start]
    shown = rest[:limit]
    page = Rows(rows=shown, keys=[(one.ordinal,) for one in shown], more=len(rest) > limit, total=len(rows))
    return page_reply(page, OverflowFinding.model_validate)


@router.get("/dumps/{dump_id}/overflow/tree", response_model=OverflowRows)
def below(dump_id: Id, state: Shared, entries: Entries, step: Step = None, rank: Rank = None) -> Response:
    """Which of these rows of the module tree have such a number, in themselves or below."""
    wanted = [int(word) if word.isascii() and word.isdigit() else None for word in words(entries)]
    if None in wanted or len(wanted) > MOST_ENTRIES:
        raise UsageError(
            say("api.entries_up_whole_numbers", most_entries=MOST_ENTRIES), hint=say("api.entry_rows_tree")
        )
    seen = _found(state, dump_id, step, rank).below
    rows = [(entry, seen[entry]) for entry in wanted if entry is not None and entry in seen]
    items = [OverflowBelow(entry=entry, part=one.part, calls=one.calls) for entry, one in rows]
    return reply(OverflowRows(items=items))


def _found(state: State, dump_id: str, step: int | None, rank: int | None) -> StoredOverflow:
    dump = get_dump(state.database, dump_id)
    return stored_overflow(state.database, dump, find_rank(state.database, dump_id, step, rank))
