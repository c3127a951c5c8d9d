"""Webhooks: the end of jobs is told to other machines."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from dumpscope.api.http.proxy_prefix import home_of
from dumpscope.api.models.base import Page
from dumpscope.api.models.jobs import Delivery, MadeWebhook, NewWebhook, Webhook
from dumpscope.api.parameters import Cursor, Id, Limit
from dumpscope.api.replies import after, list_reply, reply
from dumpscope.api.state import Shared
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import get_comparison
from dumpscope.index.dumps.catalogue import get_dump
from dumpscope.index.store.webhooks import (
    count_deliveries,
    count_webhooks,
    create_webhook,
    delete_webhook,
    get_webhook,
    list_deliveries,
    list_webhooks,
)
from dumpscope.jobs.webhooks import Allowed
from dumpscope.texts import say

router = APIRouter(tags=["webhooks"])


@router.post("/webhooks", status_code=201, response_model=MadeWebhook)
def create(request: Request, body: NewWebhook, state: Shared) -> Response:
    """Have the end of jobs sent to an address, as a signed JSON document; the reply shows the secret, once."""
    Allowed(state.settings.webhook_hosts).check(body.url)
    if body.comparison is not None and body.dump is not None:
        raise UsageError(say("api.webhook_one_subject"), hint=say("api.webhook_one_subject_hint"))
    if body.comparison is not None:
        get_comparison(state.database, body.comparison)
    if body.dump is not None:
        get_dump(state.database, body.dump)
    made = create_webhook(
        state.database,
        url=body.url,
        home=home_of(request),
        kinds=sorted(set(body.kinds)),
        states=sorted(set(body.states)),
        subject=body.comparison or body.dump,
    )
    state.deliveries.look_soon()
    return reply(MadeWebhook.model_validate(made), 201, {"Location": f"/api/webhooks/{made.id}"})


@router.get("/webhooks", response_model=Page[Webhook])
def listing(state: Shared, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """Webhooks, newest first."""
    found = list_webhooks(state.database, after=after(cursor), limit=limit + 1)
    rows = [((serial,), row) for serial, row in found]
    return list_reply(rows, limit, None, lambda: count_webhooks(state.database), Webhook.model_validate)


@router.get("/webhooks/{webhook_id}", response_model=Webhook)
def one(webhook_id: Id, state: Shared) -> Response:
    """One webhook."""
    return reply(Webhook.model_validate(get_webhook(state.database, webhook_id)))


@router.delete("/webhooks/{webhook_id}", status_code=204)
def remove(webhook_id: Id, state: Shared) -> Response:
    """Send nothing more to it, also not what is still to be sent."""
    delete_webhook(state.database, webhook_id)
    return Response(status_code=204)


@router.get("/webhooks/{webhook_id}/deliveries", response_model=Page[Delivery])
def deliveries(webhook_id: Id, state: Shared, cursor: Cursor = None, limit: Limit = 100) -> Response:
    """What was or is to be sent to a webhook, newest first; of those that are over the last 100 are kept."""
    found = list_deliveries(state.database, webhook_id, after=after(cursor), limit=limit + 1)
    rows = [((row.serial,), row) for row in found]
    return list_reply(rows, limit, None, lambda: count_deliveries(state.database, webhook_id), Delivery.model_validate)
