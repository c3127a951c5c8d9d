"""Models of background work and of the server's health."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from dumpscope.api.models.base import Error, Moment, MomentOrNone, Phrase, Wire
from dumpscope.domain.job import without_provisional
from dumpscope.texts import said_of


def _said(message: Any) -> Any:
    """A job's message as phrases."""
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
    kind: Literal["ingest", "update", "compare", "rejudge", "precheck", "checkpoints"]
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
