"""Registers dumps: which paths may be opened, the name of a dump, and the job that reads it."""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import Response

from dumpscope.api.models.base import Accepted
from dumpscope.api.replies import reply
from dumpscope.api.state import State
from dumpscope.errors import ForbiddenError, NotFoundError, UsageError
from dumpscope.index.dumps.catalogue import change_dump
from dumpscope.readers.discover import nearest
from dumpscope.texts import say


def resolve_path(state: State, given: str) -> Path:
    """The real path, links followed; raises ForbiddenError outside the roots, NotFoundError if nothing is there."""
    roots = state.settings.roots
    hint = say("api.start_server_root_folder_holds")
    if "\0" in given:
        raise UsageError(say("api.path_holds_nul_character"))
    try:
        path = Path(given).expanduser()
        real = (path if path.is_absolute() else roots[0] / path).resolve()
        there = real.exists()
    except (OSError, RuntimeError) as error:  # an unknown user, links in a circle, a name that is too long
        raise NotFoundError(say("api.path_cannot_resolved"), where=given) from error
    if not any(real == root or root in real.parents for root in roots):
        raise ForbiddenError(say("api.path_lies_outside_servers_roots"), where=given, hint=hint)
    if not there:
        raise NotFoundError(say("api.nothing_there"), where=given, hint=nearest(str(real)))
    return real


def root_of(state: State, path: Path) -> str:
    """The root that a resolved path lies below."""
    return str(next(root for root in state.settings.roots if path == root or root in path.parents))


def default_name(path: Path) -> str:
    """The last part of the path that distinguishes dumps."""
    parts = [part for part in path.parts if not part.endswith(".json")]
    telling = [part for part in parts if not part.startswith(("step", "rank", "proc", "dump_tensor_data"))]
    return telling[-1] if telling and telling[-1] != os.sep else path.name


def start_ingest(state: State, dump_id: str, path: str, extra: dict[str, object] | None = None) -> Response:
    """Start reading a registered dump; returns the 202 reply."""
    job = state.runner.submit("ingest", dump_id, {"path": path, "trusted": False, **(extra or {})})
    change_dump(state.database, dump_id, job=job.id)
    return reply(Accepted(id=dump_id, job=job.id), 202, {"Location": f"/api/dumps/{dump_id}"})
