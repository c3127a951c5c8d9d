"""The job table: what the runner keeps of its work, so that it survives a crash."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert as insert_row, select, update

from dumpscope.domain.job import FINISHED, Job
from dumpscope.errors import NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import column_values, phrases_to_json, to_json, with_phrases
from dumpscope.index.store.database import Database
from dumpscope.index.store.webhooks import announce
from dumpscope.texts import say


class JobTable:
    """Stores jobs; every change raises the job's version."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, kind: str, subject: str, payload: dict[str, Any]) -> Job:
        job_id = secrets.token_hex(5)
        with self._database.write() as connection:
            connection.execute(
                insert_row(tables.job).values(
                    id=job_id,
                    kind=kind,
                    subject=subject,
                    status="queued",
                    payload=to_json(payload),
                    progress=0.0,
                    message="",
                    cancel=0,
                    version=1,
                    created=time.time(),
                )
            )
        return self.get(job_id)

    def get(self, job_id: str) -> Job:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            row = connection.execute(select(tables.job).where(tables.job.c.id == job_id)).one_or_none()
        if row is None:
            raise NotFoundError(say("index.no_job", job_id=f"{job_id!r}"), hint=say("index.get_api_jobs_lists_them"))
        return _row(row)

    def of(self, kind: str, subject: str) -> Sequence[Job]:
        """Jobs of this kind about this subject that are not over."""
        return [job for _, job in self.list(unfinished=True, limit=1000) if (job.kind, job.subject) == (kind, subject)]

    def list(self, *, after: int | None = None, limit: int = 100, unfinished: bool = False) -> list[tuple[int, Job]]:
        """Newest first, as (serial, job); `after` is the serial of the last one seen."""
        statement = select(tables.job).order_by(tables.job.c.serial.desc()).limit(limit)
        if after is not None:
            statement = statement.where(tables.job.c.serial < after)
        if unfinished:
            statement = statement.where(tables.job.c.status.not_in(FINISHED))
        with self._database.read() as connection:
            return [(row.serial, _row(row)) for row in connection.execute(statement)]

    def count(self) -> int:
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(tables.job)).scalar_one())

    def claim(self) -> Job | None:
        """Take the oldest queued job and mark it running, without what an earlier attempt said; None when there is none."""
        with self._database.write() as connection:
            oldest = select(tables.job).where(tables.job.c.status == "queued").order_by(tables.job.c.serial).limit(1)
            row = connection.execute(oldest).one_or_none()
            if row is None:
                return None
            _change(
                connection, row.id, status="running", started=time.time(), progress=0.0, message=say("jobs.starting")
            )
            connection.execute(delete(tables.task).where(tables.task.c.job == row.id))
        return self.get(row.id)

    def change(self, job_id: str, **values: Any) -> None:
        """Set columns of a job; a dict becomes JSON text."""
        with self._database.write() as connection:
            _change(connection, job_id, **column_values(values))

    def finish(self, job_id: str, status: str, error: dict[str, Any] | None = None) -> None:
        """Mark the job over, whatever it was."""
        done: dict[str, Any] = {"progress": 1.0, "message": ""} if status == "done" else {}
        with self._database.write() as connection:
            values = column_values({"status": status, "error": error, "finished": time.time(), "eta": None, **done})
            _change(connection, job_id, **values)
            connection.execute(delete(tables.task).where(tables.task.c.job == job_id))
            announce(connection, job_id)

    def cancel(self, job_id: str, why: int = 1) -> Job:
        """Ask a running job to stop, end a queued one; one that is over stays as it is. why: see `jobs.runner`."""
        with self._database.write() as connection:
            row = connection.execute(select(tables.job.c.status).where(tables.job.c.id == job_id)).one_or_none()
            if row is not None and row.status == "queued":
                _change(connection, job_id, status="cancelled", cancel=why, finished=time.time())
                announce(connection, job_id)
            elif row is not None and row.status == "running":
                _change(connection, job_id, cancel=why, message=say("jobs.cancelling"))
        return self.get(job_id)

    def stop_asked(self, job_id: str) -> int:
        """0, or why the job was asked to stop."""
        with self._database.read() as connection:
            return int(connection.execute(select(tables.job.c.cancel).where(tables.job.c.id == job_id)).scalar() or 0)

    def requeue(self) -> Sequence[Job]:
        """Put jobs that a crash left running back in the queue (those a user asked to stop end); returns them.

        Nothing where another live server leads: the running jobs may be its own.
        """
        if not self._database.lead():
            return []
        with self._database.write() as connection:
            running = select(tables.job.c.id, tables.job.c.cancel).where(tables.job.c.status == "running")
            left = connection.execute(running).all()
            for row in left:
                if row.cancel == 1:
                    _change(connection, row.id, status="cancelled", finished=time.time())
                    announce(connection, row.id)
                else:
                    _change(
                        connection,
                        row.id,
                        status="queued",
                        cancel=0,
                        progress=0.0,
                        message=say("jobs.restarted"),
                        eta=None,
                    )
        return [self.get(row.id) for row in left]

    def report(self, job_id: str, number: int, progress: float, message: str) -> None:
        """Progress of one of a job's tasks, from whatever process it runs in."""
        table = tables.task
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.job == job_id, table.c.number == number))
            connection.execute(
                insert_row(table).values(
                    job=job_id, number=number, progress=progress, message=message, said=phrases_to_json(message)
                )
            )

    def withdraw(self, job_id: str, number: int) -> None:
        """Forget what a task said that is done: of a thousand tasks only those at work are asked about."""
        table = tables.task
        with self._database.write() as connection:
            connection.execute(delete(table).where(table.c.job == job_id, table.c.number == number))

    def reports(self, job_id: str) -> dict[int, tuple[float, str]]:
        """Task number -> (progress, message) of what the tasks of a job last said."""
        table = tables.task
        with self._database.read() as connection:
            rows = connection.execute(select(table).where(table.c.job == job_id))
            return {row.number: (row.progress, with_phrases(row.message, row.said)) for row in rows}

    def has_reported(self, job_id: str, number: int) -> bool:
        """Whether there is a report under this task number."""
        table = tables.task.c
        with self._database.read() as connection:
            found = select(table.number).where(table.job == job_id, table.number == number)
            return connection.execute(found).scalar() is not None


def _change(connection: Connection, job_id: str, **values: Any) -> None:
    table = tables.job
    if "message" in values:
        values["said"] = phrases_to_json(values["message"])
    connection.execute(update(table).where(table.c.id == job_id).values(version=table.c.version + 1, **values))


def _row(row: Any) -> Job:
    return Job(
        id=row.id,
        kind=row.kind,
        subject=row.subject,
        status=row.status,
        payload=json.loads(row.payload),
        progress=row.progress,
        message=with_phrases(row.message, row.said),
        eta=row.eta,
        error=json.loads(row.error) if row.error else None,
        cancel=bool(row.cancel),
        version=row.version,
        created=row.created,
        started=row.started,
        finished=row.finished,
    )
