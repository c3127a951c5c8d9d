"""Webhooks and their deliveries. A delivery is written in the transaction that ends its job, so none is lost in a crash."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Connection, Select, delete, func, insert as insert_row, select, update

from dumpscope.domain.job import FINISHED
from dumpscope.errors import ConflictError, NotFoundError
from dumpscope.index.store import tables
from dumpscope.index.store.codec import phrases_to_json, to_json, with_phrases
from dumpscope.index.store.database import Database
from dumpscope.texts import say

MOST: Final = 100
"""Webhooks of a server."""
KEPT: Final = 100
"""Deliveries of a webhook that are kept after their end."""

DeliveryStatus = Literal["pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """kinds, states: of the jobs that it is told of; subject: of a dump or comparison, None for all; home: address of the page"""

    id: str
    url: str
    secret: str
    home: str
    kinds: list[str]
    states: list[str]
    subject: str | None
    created: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """event: kind and end of the job; body: what is sent, None before the first try; due: time of the next try, None when it is
    over; reply_status: of HTTP, of the last try; times in seconds since the epoch"""

    serial: int
    id: str
    event: str
    job: str
    status: DeliveryStatus
    body: str | None
    tries: int
    due: float | None
    reply_status: int | None
    error: str | None
    created: float
    finished: float | None


def create_webhook(
    database: Database, *, url: str, home: str, kinds: Sequence[str], states: Sequence[str], subject: str | None
) -> WebhookRow:
    """A new webhook with a secret of its own. The end of a subject's last job is sent at once where that is over already: it may
    have ended while the webhook was made. Raises ConflictError where there are too many."""
    webhook_id = secrets.token_hex(5)
    with database.write() as connection:
        if connection.execute(select(func.count()).select_from(tables.webhook)).scalar_one() >= MOST:
            raise ConflictError(say("index.too_many_webhooks", limit=MOST), hint=say("index.delete_webhook"))
        connection.execute(
            insert_row(tables.webhook).values(
                id=webhook_id,
                url=url,
                secret=f"whsec_{secrets.token_urlsafe(32)}",
                home=home,
                kinds=to_json(list(kinds)),
                states=to_json(list(states)),
                subject=subject,
                created=time.time(),
            )
        )
        if subject is not None:
            jobs = tables.job.c
            last = select(jobs.id, jobs.status).where(jobs.subject == subject).order_by(jobs.serial.desc()).limit(1)
            found = connection.execute(last).one_or_none()
            if found is not None and found.status in FINISHED:
                announce(connection, found.id, only=webhook_id)
    return get_webhook(database, webhook_id)


def get_webhook(database: Database, webhook_id: str) -> WebhookRow:
    """Raises NotFoundError."""
    with database.read() as connection:
        row = connection.execute(select(tables.webhook).where(tables.webhook.c.id == webhook_id)).one_or_none()
    if row is None:
        raise NotFoundError(say("index.no_webhook", webhook_id=f"{webhook_id!r}"), hint=say("index.get_api_webhooks"))
    return _webhook(row)


def list_webhooks(database: Database, *, after: int | None = None, limit: int = 100) -> list[tuple[int, WebhookRow]]:
    """Newest first, as (serial, row); `after` is the serial of the last one seen."""
    statement = select(tables.webhook).order_by(tables.webhook.c.serial.desc()).limit(limit)
    if after is not None:
        statement = statement.where(tables.webhook.c.serial < after)
    with database.read() as connection:
        return [(row.serial, _webhook(row)) for row in connection.execute(statement)]


def count_webhooks(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(tables.webhook)).scalar_one())


def delete_webhook(database: Database, webhook_id: str) -> None:
    """Remove a webhook and its deliveries, also those that were not sent yet."""
    get_webhook(database, webhook_id)
    with database.write() as connection:
        connection.execute(delete(tables.delivery).where(tables.delivery.c.webhook.in_(_serial(webhook_id))))
        connection.execute(delete(tables.webhook).where(tables.webhook.c.id == webhook_id))


def announce(connection: Connection, job_id: str, *, only: str | None = None) -> None:
    """Note that a job which is over is to be told to the webhooks that want it, in the transaction that ends it."""
    hooks = connection.execute(
        select(tables.webhook).where(*([] if only is None else [tables.webhook.c.id == only]))
    ).all()
    if not hooks:
        return
    job = connection.execute(select(tables.job).where(tables.job.c.id == job_id)).one_or_none()
    if job is None:
        return
    now = time.time()
    for hook in hooks:
        wanted = job.kind in json.loads(hook.kinds) and job.status in json.loads(hook.states)
        if not wanted or hook.subject not in (None, job.subject):
            continue
        connection.execute(
            insert_row(tables.delivery).values(
                id=secrets.token_hex(8),
                webhook=hook.serial,
                event=f"{job.kind}.{job.status}",
                job=job_id,
                status="pending",
                tries=0,
                due=now,
                created=now,
            )
        )
        _forget_old(connection, hook.serial)


def due_deliveries(database: Database, now: float, limit: int) -> list[tuple[WebhookRow, DeliveryRow]]:
    """The earliest delivery of each webhook whose time has come."""
    table = tables.delivery.c
    first = select(func.min(table.serial)).where(table.due <= now).group_by(table.webhook)
    hooks = select(tables.webhook)
    with database.read() as connection:
        rows = connection.execute(
            select(tables.delivery).where(table.serial.in_(first)).order_by(table.due).limit(limit)
        ).all()
        known = {row.serial: _webhook(row) for row in connection.execute(hooks)} if rows else {}
    return [(known[row.webhook], _delivery(row)) for row in rows if row.webhook in known]


def next_due(database: Database) -> float | None:
    """Time of the earliest delivery that is still to be made."""
    with database.read() as connection:
        found: float | None = connection.execute(select(func.min(tables.delivery.c.due))).scalar()
    return found


def change_delivery(
    database: Database,
    serial: int,
    *,
    status: DeliveryStatus,
    tries: int,
    due: float | None,
    reply_status: int | None,
    error: str | None,
) -> None:
    """Keep how a try ended."""
    with database.write() as connection:
        connection.execute(
            update(tables.delivery)
            .where(tables.delivery.c.serial == serial)
            .values(
                status=status,
                tries=tries,
                due=due,
                reply_status=reply_status,
                error=error,
                said=None if error is None else phrases_to_json(error),
                finished=None if status == "pending" else time.time(),
            )
        )


def keep_body(database: Database, serial: int, body: str) -> None:
    """Every try sends the same body."""
    with database.write() as connection:
        connection.execute(update(tables.delivery).where(tables.delivery.c.serial == serial).values(body=body))


def list_deliveries(
    database: Database, webhook_id: str, *, after: int | None = None, limit: int = 100
) -> list[DeliveryRow]:
    """Newest first; `after` is the serial of the last one seen. Raises NotFoundError for an unknown webhook."""
    get_webhook(database, webhook_id)
    table = tables.delivery.c
    statement: Select[Any] = select(tables.delivery).where(table.webhook.in_(_serial(webhook_id)))
    if after is not None:
        statement = statement.where(table.serial < after)
    with database.read() as connection:
        rows = connection.execute(statement.order_by(table.serial.desc()).limit(limit))
        return [_delivery(row) for row in rows]


def count_deliveries(database: Database, webhook_id: str) -> int:
    counted = select(func.count()).select_from(tables.delivery)
    with database.read() as connection:
        return int(connection.execute(counted.where(tables.delivery.c.webhook.in_(_serial(webhook_id)))).scalar_one())


def _serial(webhook_id: str) -> Select[tuple[int]]:
    return select(tables.webhook.c.serial).where(tables.webhook.c.id == webhook_id)


def _forget_old(connection: Connection, webhook: int) -> None:
    """Remove deliveries that are over, but for the newest ones. webhook: its serial"""
    table = tables.delivery.c
    over = select(table.serial).where(table.webhook == webhook, table.due.is_(None))
    oldest = over.order_by(table.serial.desc()).offset(KEPT).limit(1)
    bound = connection.execute(oldest).scalar()
    if bound is not None:
        gone = delete(tables.delivery).where(table.webhook == webhook, table.due.is_(None), table.serial <= bound)
        connection.execute(gone)


def _webhook(row: Any) -> WebhookRow:
    return WebhookRow(
        id=row.id,
        url=row.url,
        secret=row.secret,
        home=row.home,
        kinds=json.loads(row.kinds),
        states=json.loads(row.states),
        subject=row.subject,
        created=row.created,
    )


def _delivery(row: Any) -> DeliveryRow:
    return DeliveryRow(
        serial=row.serial,
        id=row.id,
        event=row.event,
        job=row.job,
        status=row.status,
        body=row.body,
        tries=row.tries,
        due=row.due,
        reply_status=row.reply_status,
        error=None if row.error is None else with_phrases(row.error, row.said),
        created=row.created,
        finished=row.finished,
    )
