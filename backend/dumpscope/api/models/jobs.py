"""Models of background work, of those who are told of its end, and of the server's health."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from dumpscope.api.models.base import DumpId, Error, Moment, MomentOrNone, Phrase, Wire
from dumpscope.domain.job import JobEnd, JobKind, without_provisional
from dumpscope.jobs.webhooks import URL_LENGTH
from dumpscope.texts import said_of


def _said(message: Any) -> Any:
    """A sentence as phrases."""
    return said_of(message) if isinstance(message, str) else message


class Health(Wire):
    """results: files that the server shows as copies; changes are lost when it ends. status: "no_workers" while the cluster has
    none, so that jobs wait"""

    version: str
    database: Literal["sqlite", "postgresql"]
    executor: str
    results: list[str]
    status: Literal["ok", "no_workers"]


class Job(Wire):
    """`provisional`: node of the first origin by statistics, while tensors are still being read."""

    id: str
    kind: JobKind
    subject: str
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: float
    message: Annotated[str, BeforeValidator(without_provisional)]
    provisional: str | None
    said: Annotated[
        list[Phrase] | None, BeforeValidator(_said), Field(validation_alias=AliasChoices("said", "message"))
    ] = None
    eta: float | None
    error: Error | None
    created: Moment
    started: MomentOrNone
    finished: MomentOrNone


class NewWebhook(BaseModel):
    """`url`: http or https, of a host that the server's operator named; `kinds`, `states`: of the jobs whose end is told;
    `comparison` or `dump`: only jobs about this one. If its last job is over already, that end is told at once."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH)]
    kinds: Annotated[list[JobKind], Field(min_length=1, max_length=20)] = [
        kind for kind in get_args(JobKind) if kind != "monitor"
    ]
    states: Annotated[list[JobEnd], Field(min_length=1, max_length=20)] = list(get_args(JobEnd))
    comparison: DumpId | None = None
    dump: DumpId | None = None


class Webhook(Wire):
    """`subject`: id of the comparison or dump whose jobs are told, null for all"""

    id: str
    url: str
    kinds: list[JobKind]
    states: list[JobEnd]
    subject: str | None
    created: Moment


class MadeWebhook(Webhook):
    """`secret`: signs every body; it is shown here and never again"""

    secret: str


class Delivery(Wire):
    """`event`: kind and end of the job; `due`: time of the next try, null when it is over; `reply_status`: of HTTP, of the last
    try, null without a reply; `error`: why the last try failed"""

    id: str
    event: str
    job: str
    status: Literal["pending", "delivered", "failed"]
    tries: int
    due: MomentOrNone
    reply_status: int | None
    error: str | None
    error_said: Annotated[
        list[Phrase] | None, BeforeValidator(_said), Field(validation_alias=AliasChoices("error_said", "error"))
    ] = None
    created: Moment
    finished: MomentOrNone
