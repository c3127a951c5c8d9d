"""Models of webhooks and their deliveries."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from dumpscope.api.models.base import DumpId, Moment, MomentOrNone, Phrase, Wire
from dumpscope.domain.job import JobEnd, JobKind
from dumpscope.jobs.webhooks import URL_LENGTH
from dumpscope.texts import said_of


def _said(error: Any) -> Any:
    """A sentence as phrases."""
    return said_of(error) if isinstance(error, str) else error


class NewWebhook(BaseModel):
    """`url`: http or https, of a host that the server's operator named; `kinds`, `states`: of the jobs whose end is told;
    `comparison` or `dump`: only jobs about this one. If its last job is over already, that end is told at once."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH)]
    kinds: Annotated[list[JobKind], Field(min_length=1, max_length=20)] = list(get_args(JobKind))
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
