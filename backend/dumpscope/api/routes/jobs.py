"""Jobs and their events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from dumpscope.api.models.base import Page
from dumpscope.api.models.jobs import Job
from dumpscope.api.parameters import Cursor, Id, Limit
from dumpscope.api.replies import after, list_reply, reply
from dumpscope.api.state import Shared, State
from dumpscope.domain.job import Job as StoredJob

router = APIRouter(tags=["jobs"])


@router.get("/jobs", response_model=Page[Job])
def listing(state: Shared, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Jobs, newest first."""
    found = state.jobs.list(after=after(cursor), limit=limit + 1)
    return list_reply([((serial,), job) for serial, job in found], limit, None, state.jobs.count, Job.model_validate)


@router.get("/jobs/{job_id}", response_model=Job)
def one(job_id: Id, state: Shared) -> Response:
    """One job."""
    return reply(Job.model_validate(state.jobs.get(job_id)))


@router.get(
    "/jobs/{job_id}/events",
    response_class=StreamingResponse,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def events(request: Request, job_id: Id, state: Shared) -> Response:
    """Events `progress`, `done` and `failed` (also if cancelled), each with the job as data; the current state comes first."""
    first = await run_in_threadpool(state.jobs.get, job_id)
    client = request.client.host if request.client else ""
    state.feed.check(client)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(state, client, first), headers=headers, media_type="text/event-stream")


async def _stream(state: State, client: str, job: StoredJob) -> AsyncIterator[str]:
    with state.feed.count(client):
        yield "retry: 2000\n\n"
        yield _event(job)
        async for news in state.feed.follow(job):
            yield ": still here\n\n" if news is None else _event(news)


def _event(job: StoredJob) -> str:
    name = "done" if job.status == "done" else "failed" if job.over else "progress"
    return f"id: {job.version}\nevent: {name}\ndata: {Job.model_validate(job).model_dump_json()}\n\n"
