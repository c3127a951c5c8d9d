"""A script that runs one call of a dump alone."""

from __future__ import annotations

import os

from fastapi import APIRouter, Response

from dumpscope.api.parameters import Id, Name, Rank, Step
from dumpscope.api.replies import reply
from dumpscope.api.schemas import Wire
from dumpscope.api.state import Shared
from dumpscope.domain.records import Layout
from dumpscope.errors import UsageError
from dumpscope.index.dumps import find_rank, get_dump
from dumpscope.index.ranks import rank_places
from dumpscope.pipeline.reproduce import find_call, write_script

router = APIRouter(tags=["dumps"])


class Script(Wire):
    """`file` is a name for it; it reads tensors below the dump's folder on the server (`--data` of the script: elsewhere).

    `files` of them are there; `tensors` is how many its arguments are. Without any it makes its numbers up.
    Where the call cannot be run alone `text` is null and `refused` says why.
    """

    name: str
    file: str
    text: str | None
    refused: str | None
    tensors: int
    files: int
    notes: list[str]


@router.get("/dumps/{dump_id}/reproduce/{name:anything}", response_model=Script)
def script(dump_id: Id, name: Name, state: Shared, step: Step = None, rank: Rank = None) -> Response:
    """The text of a Python script that runs a call forward and backward and judges it, or why there is none."""
    dump = get_dump(state.database, dump_id)
    stored = find_rank(state.database, dump_id, step, rank)
    ref = rank_places(state.database, dump_id)[stored.id]
    try:
        found = find_call(Layout(root=dump.path, ranks=[ref], problems=[]), name)
    except UsageError as error:
        why = f"{error.detail} ({error.hint})" if error.hint else error.detail
        return reply(Script(name=name, file="", text=None, refused=why, tensors=0, files=0, notes=[]))
    origin = f"{dump.name}, step {stored.step}, rank {stored.rank}"
    return reply(
        Script(
            name=found.call["name"],
            file=f"{found.call['name'].replace(os.sep, '_')}.py",
            text=write_script(found, origin=origin, data=found.folder or ""),
            refused=None,
            tensors=len(found.arguments),
            files=len(found.files),
            notes=found.call["notes"],
        )
    )
