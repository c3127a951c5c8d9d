"""Health of the server."""

from __future__ import annotations

from fastapi import APIRouter, Response

from dumpscope import __version__
from dumpscope.api.models.jobs import Health
from dumpscope.api.replies import reply
from dumpscope.api.state import Shared
from dumpscope.jobs.executors import lacks_workers

router = APIRouter(tags=["health"])


@router.get("/health", response_model=Health)
def health(state: Shared) -> Response:
    """Version, database and executor; the database was reached."""
    with state.database.read() as connection:
        connection.exec_driver_sql("SELECT 1")
    return reply(
        Health(
            version=__version__,
            database=state.database.kind,
            executor=state.settings.workers,
            results=list(state.results),
            status="no_workers" if lacks_workers(state.executor) else "ok",
        )
    )
