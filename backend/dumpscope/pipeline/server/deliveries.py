"""Sends what the ends of jobs owe to webhooks: one thread of one server, whichever holds the role "webhook" at the database.

What is to be sent is in the database, so it survives a restart; it is tried again for a day, more and more rarely. A slow
receiver holds up its own deliveries and no others.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from dumpscope import __version__
from dumpscope.domain.job import Job
from dumpscope.errors import NotFoundError
from dumpscope.index.checkpoints.catalogue import get_checkpoint_diff
from dumpscope.index.comparisons.catalogue import get_comparison
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.monitors.catalogue import get_monitor
from dumpscope.index.store.database import Database
from dumpscope.index.store.jobs import JobTable
from dumpscope.index.store.webhooks import (
    DeliveryRow,
    WebhookRow,
    change_delivery,
    due_deliveries,
    keep_body,
    next_due,
)
from dumpscope.jobs.webhooks import SECONDS, SIGNATURE, Allowed, DeliveryError, post, sign
from dumpscope.pipeline.server.rounds import Rounds

LOOK_SECONDS: Final = 2.0
"""Longest time between two looks: another server may have ended a job."""
AT_ONCE: Final = 16
FIRST_PAUSE: Final = 10.0
"""Seconds before the second try; each further pause is twice as long."""
LONGEST_PAUSE: Final = 3600.0
GIVEN_UP: Final = 86400.0
"""Seconds after which nothing is tried any more."""
LONGEST_TEXT: Final = 2000
COMPARED: Final = ("compare", "rejudge")
"""Kinds of jobs about a comparison of dumps; but for those about checkpoints and monitored runs, the others are about a dump."""

log = logging.getLogger(__name__)


class Deliveries(Rounds):
    """hosts: those that may be reached (see jobs.webhooks)

    What is on its way when it is stopped is not waited for: its end is not known then, and it is sent again after the next start.
    """

    def __init__(self, database: Database, hosts: Sequence[str]) -> None:
        super().__init__("webhooks", LOOK_SECONDS)
        self._database = database
        self._jobs = JobTable(database)
        self._allowed = Allowed(hosts)
        self._busy: set[str] = set()

    def look(self, *, asked: bool = False) -> float:
        """Begin what is due. Returns seconds to the next look."""
        due = next_due(self._database)
        now = time.time()
        if due is None or not self._database.lead("webhook"):
            return LOOK_SECONDS
        if due > now:
            return min(due - now, LOOK_SECONDS)
        with self._wake:
            busy = set(self._busy)  # what these had due may be over before it is read
        for hook, delivery in due_deliveries(self._database, now, AT_ONCE + len(busy)):
            with self._wake:
                if hook.id in busy or hook.id in self._busy or len(self._busy) >= AT_ONCE or self._stopping:
                    continue
                self._busy.add(hook.id)
            threading.Thread(target=self._deliver, args=(hook, delivery), name="webhook", daemon=True).start()
        return LOOK_SECONDS

    def _deliver(self, hook: WebhookRow, delivery: DeliveryRow) -> None:
        try:
            self._try(hook, delivery)
        except Exception:
            log.exception("the delivery %s was not stored", delivery.id)
            time.sleep(LOOK_SECONDS)
        finally:
            with self._wake:
                self._busy.discard(hook.id)
            self.look_soon()

    def _try(self, hook: WebhookRow, delivery: DeliveryRow) -> None:
        tries, text = delivery.tries + 1, delivery.body
        if text is None:
            text = json.dumps(self._body(hook, delivery), ensure_ascii=True, allow_nan=False)
            keep_body(self._database, delivery.serial, text)
        body = text.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"dumpscope/{__version__}",
            "Dumpscope-Event": delivery.event,
            "Dumpscope-Delivery": delivery.id,
            SIGNATURE: sign(body, hook.secret, time.time()),
        }
        try:
            status = post(self._allowed, hook.url, body, headers, SECONDS)
        except DeliveryError as error:
            now = time.time()
            over = error.final or now - delivery.created >= GIVEN_UP
            pause = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 20), LONGEST_PAUSE)
            state: dict[str, Any] = (
                {"status": "failed", "due": None} if over else {"status": "pending", "due": now + pause}
            )
            change_delivery(
                self._database,
                delivery.serial,
                tries=tries,
                reply_status=error.reply_status,
                error=error.detail if len(error.detail) <= LONGEST_TEXT else error.detail[:LONGEST_TEXT],
                **state,
            )
        else:
            change_delivery(
                self._database,
                delivery.serial,
                status="delivered",
                tries=tries,
                due=None,
                reply_status=status,
                error=None,
            )

    def _body(self, hook: WebhookRow, delivery: DeliveryRow) -> dict[str, Any]:
        """What is sent, see docs/rest.md. At most some 10 kB."""
        kind, _, state = delivery.event.partition(".")
        body: dict[str, Any] = {
            "id": delivery.id, "event": delivery.event, "kind": kind, "state": state, "job": delivery.job, "subject": None,
            "name": None, "outcome": None, "cause": None, "error": None, "link": hook.home, "created": delivery.created,
        }  # fmt: skip
        try:
            job = self._jobs.get(delivery.job)
        except NotFoundError:
            return body
        body["subject"] = job.subject
        body["error"] = _brief(job)
        try:
            if kind in COMPARED:
                row = get_comparison(self._database, job.subject)
                body |= {"name": row.name, "link": f"{hook.home}/comparisons/{row.id}"}
                if row.answer is not None and state == "done":
                    body["outcome"] = row.answer.outcome
                    first = row.answer.origins[0] if row.answer.origins else None
                    body["cause"] = first and {
                        "node": first.node[:LONGEST_TEXT], "kind": first.kind, "step": first.step, "rank": first.rank
                    }  # fmt: skip
            elif kind == "checkpoints":
                diff = get_checkpoint_diff(self._database, job.subject)
                body |= {"name": diff.name, "link": f"{hook.home}/checkpoints/{diff.id}"}
            elif kind == "monitor":
                monitor = get_monitor(self._database, job.subject)
                body |= {"name": monitor.name, "link": f"{hook.home}/monitors/{monitor.id}"}
            else:
                dump = get_dump(self._database, job.subject)
                body |= {"name": dump.name, "link": f"{hook.home}/dumps/{dump.id}"}
        except NotFoundError:  # deleted meanwhile
            pass
        return body


def _brief(job: Job) -> dict[str, Any] | None:
    if job.error is None:
        return None
    return {
        "error": str(job.error.get("error", "")),
        "detail": str(job.error.get("detail", ""))[:LONGEST_TEXT],
        "hint": None if job.error.get("hint") is None else str(job.error["hint"])[:LONGEST_TEXT],
    }
