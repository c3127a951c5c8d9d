"""Notes on calls, stored with the pair of dumps."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, StringConstraints

from dumpscope.api.models.base import Moment, Page, Wire
from dumpscope.api.parameters import Cursor, Id, Limit, Name
from dumpscope.api.replies import decode_cursor, page_reply, reply
from dumpscope.api.state import Shared
from dumpscope.index.pair_queries.notes import Standing, delete_note, list_notes, put_note

router = APIRouter(prefix="/comparisons/{comparison_id}/notes", tags=["notes"])


class SaidNote(BaseModel):
    """A note on a call; for a `ticket`, `text` should name it."""

    model_config = ConfigDict(extra="forbid")

    standing: Standing
    text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)] = ""


class NodeNote(Wire):
    """`accepted`: the difference is allowed; `known`: its cause is known; `ticket`: somebody works on it; `note`: only a text.
    `node`: name of the call, in every step and rank."""

    node: str
    standing: Standing
    text: str
    changed: Moment


@router.get("", response_model=Page[NodeNote])
def notes(comparison_id: Id, state: Shared, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Notes on calls of these two dumps, this comparison's and earlier ones', oldest first."""
    seek, _ = decode_cursor(cursor)
    return page_reply(list_notes(state.database, comparison_id, seek=seek, limit=limit), NodeNote.model_validate)


@router.put("/{name:anything}", response_model=NodeNote)
def put(comparison_id: Id, name: Name, body: SaidNote, state: Shared) -> Response:
    """Set the note on a call; it replaces an earlier one."""
    return reply(NodeNote.model_validate(put_note(state.database, comparison_id, name, body.standing, body.text)))


@router.delete("/{name:anything}", status_code=204)
def delete(comparison_id: Id, name: Name, state: Shared) -> Response:
    """Remove the note on a call."""
    delete_note(state.database, comparison_id, name)
    return Response(status_code=204)
