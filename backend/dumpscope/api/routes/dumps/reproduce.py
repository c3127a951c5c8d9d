"""A script that runs one call of a dump alone, and an archive of it for the operator's owner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import Field

from dumpscope.api.downloads import OpenFile, attachment
from dumpscope.api.models.base import Phrase, Wire, phrases_of
from dumpscope.api.parameters import Id, Name, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.records import DumpIndex
from dumpscope.errors import NotFoundError, UsageError
from dumpscope.index.comparisons.catalogue import get_comparison, stored_units
from dumpscope.index.dumps.catalogue import find_rank, get_dump
from dumpscope.index.dumps.load_rank import rank_places
from dumpscope.pipeline.figures.registry import draw
from dumpscope.pipeline.figures.request import FigureRequest
from dumpscope.pipeline.operators.handover import Evidence, hand_over, plan
from dumpscope.pipeline.operators.reproduce import FoundCall, find_call, write_script
from dumpscope.pipeline.tasks.cleanup import export_folder
from dumpscope.texts import say

router = APIRouter(tags=["dumps"])

PLOTTED: Final = ("error-order", "api-distribution")


class Script(Wire):
    """`file` is a name for the script. It reads tensors below the dump's folder on the server (option `--data`: elsewhere).

    `tensors`: number of its tensor arguments; `files`: how many of them have a file. Without files it makes up its numbers.
    If the call cannot be run alone, `text` is null and `refused` says why.
    """

    name: str
    file: str
    text: str | None
    refused: str | None
    refused_said: list[Phrase] | None = None
    tensors: int
    files: int
    notes: list[str]
    notes_said: list[list[Phrase] | None] = Field(default_factory=list)


class Part(Wire):
    """A file of an archive; `bytes`: unpacked size."""

    name: str
    bytes: int


class Handover(Wire):
    """Contents of the archive of a call; `bytes`: total unpacked size.

    `made_up`: no tensor of the call is in the dump, so the script makes up its numbers. `mind` says what is missing.
    If the call cannot be run alone, there are no parts and `refused` says why."""

    name: str
    file: str
    parts: list[Part]
    bytes: int
    made_up: bool
    mind: list[str]
    mind_said: list[list[Phrase] | None] = Field(default_factory=list)
    refused: str | None
    refused_said: list[Phrase] | None = None


Of = Annotated[str | None, Query(pattern=r"^[0-9A-Za-z_-]{1,64}$", description="Comparison whose plots go in.")]
ARCHIVE: dict[int | str, dict[str, Any]] = {200: {"description": "The archive.", "content": {"application/zip": {}}}}


@router.get("/dumps/{dump_id}/reproduce/{name:anything}", response_model=Script)
def script(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """The text of a Python script that runs a call forward and backward and judges it, or why there is none."""
    try:
        found, origin, _ = _find(state, dump_id, name, step, rank)
    except UsageError as error:
        why = _why(error)
        said = phrases_of(why)
        return reply(
            Script(name=name, file="", text=None, refused=why, refused_said=said, tensors=0, files=0, notes=[])
        )
    return reply(
        Script(
            name=found.call["name"],
            file=f"{found.call['name'].replace(os.sep, '_')}.py",
            text=write_script(found, origin=origin, data=found.folder or ""),
            refused=None,
            tensors=len(found.arguments),
            files=len(found.files),
            notes=found.call["notes"],
            notes_said=_said(found.call["notes"]),
        )
    )


@router.get("/dumps/{dump_id}/handover/{name:anything}", response_model=Handover)
def handover(
    dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None, comparison: Of = None
) -> Response:
    """Contents and size of the archive of a call for its owner, before it is made."""
    try:
        found, origin, stored = _find(state, dump_id, name, step, rank)
    except UsageError as error:
        why = _why(error)
        said = phrases_of(why)
        none = Handover(name=name, file="", parts=[], bytes=0, made_up=False, mind=[], refused=why, refused_said=said)
        return reply(none)
    planned = plan(found, origin, _drawings(state, comparison, stored, name))
    mind = [*found.call["notes"], *planned.mind]
    return reply(
        Handover(
            name=found.call["name"],
            file=f"{found.call['name'].replace(os.sep, '_')}.zip",
            parts=[Part(name=part, bytes=size) for part, size in planned.parts],
            bytes=sum(size for _, size in planned.parts),
            made_up=bool(found.arguments) and not found.files,
            mind=mind,
            mind_said=_said(mind),
            refused=None,
        )
    )


@router.post("/dumps/{dump_id}/handover/{name:anything}", response_class=Response, responses=ARCHIVE)
def hand_over_call(
    dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None, comparison: Of = None
) -> Response:
    """The archive: script, tensors, arguments, environment, call stack, and plots of a comparison. Nothing is run here."""
    found, origin, stored = _find(state, dump_id, name, step, rank)
    evidence = Evidence(drawings=_drawings(state, comparison, stored, name))
    with export_folder(state.settings.data_dir) as folder:
        file = folder / "finding.zip"
        hand_over(found, origin, file, evidence)
        headers = {
            "Content-Disposition": attachment(found.call["name"], "zip"),
            "Content-Length": str(file.stat().st_size),
        }
        return OpenFile(file.open("rb"), headers, "application/zip")


def _find(state: State, dump_id: str, name: str, step: int | None, rank: int | None) -> tuple[FoundCall, str, int]:
    """The call, its source in one line, and the number of its rank in the index."""
    dump = get_dump(state.database, dump_id)
    stored = find_rank(state.database, dump_id, step, rank)
    ref = rank_places(state.database, dump_id)[stored.id]
    found = find_call(DumpIndex(root=dump.path, ranks=[ref], problems=[]), name)
    return found, f"{dump.name}, step {stored.step}, rank {stored.rank}", stored.id


def _why(error: UsageError) -> str:
    return say("error.with_hint", what=error.detail, hint=error.hint) if error.hint else error.detail


def _said(sentences: Sequence[str]) -> list[list[Phrase] | None]:
    return [phrases_of(one) for one in sentences]


def _drawings(state: State, comparison: str | None, rank: int, name: str) -> dict[str, str]:
    """SVG by name, from the first step and rank of the comparison with this rank as a side; none if it does not have the call."""
    if comparison is None:
        return {}
    units = stored_units(state.database, comparison)
    if not units:
        get_comparison(state.database, comparison)
    unit = next((one for one in units if rank in (one.target, one.golden)), None)
    found: dict[str, str] = {}
    if unit is None:
        return found
    for plot in PLOTTED:
        try:
            svg = draw(state.database, comparison, unit, plot, FigureRequest(node=name)).svg
        except NotFoundError:
            continue
        if svg is not None:
            found[plot] = svg()
    return found
