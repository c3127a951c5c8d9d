"""What the routes share: one object per running server."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from threading import Event
from typing import Annotated, cast

from fastapi import Depends, Request

from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.jobs.runner import Runner
from dumpscope.pipeline.uploads.unfinished import UnfinishedUploads
from dumpscope.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """results: result files of which the database is a copy"""

    settings: Settings
    database: Database
    executor: Executor
    jobs: JobTable
    runner: Runner
    unfinished: UnfinishedUploads
    results: tuple[str, ...] = ()
    closing: Event = field(default_factory=Event)


def _state(request: Request) -> State:
    return cast(State, request.app.state.shared)


Shared = Annotated[State, Depends(_state)]
