"""Events of products, domains and jobs; webhooks and the outcome of each message to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import orjson

from forager.api.limits import RowId
from forager.api.models import LARGEST_BIGINT
from forager.errors import InvalidInput
from forager.jobs.history import KINDS, list_moves
from forager.web.formats import counted, number
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, attempt, new_router, page
from forager.web.visit import Administers, Operates, Reads
from forager.webhooks.delivery import message_content, send_test
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.service import DeliveryState, Issued, NewWebhook, WebhookChanges

router = new_router()


@page(router, "/events")
async def events(visit: Reads) -> Page:
    form = visit.asked
    found, trouble = await attempt(
        lambda: list_events(
            visit.database,
            kind=form.optional("kind"),
            domain=form.optional("domain"),
            product_id=form.number("product", least=1, most=LARGEST_BIGINT),
            **visit.paging,
        )
    )
    return Page("events.html", events=found, kinds=list(EventKind), trouble=trouble)


@page(router, "/events/jobs")
async def moves(visit: Reads) -> Page:
    kind, owner = visit.asked.optional("kind"), visit.caller.sees_only
    found = await list_moves(visit.database, move=kind, user_id=owner, **visit.paging)
    return Page("job_moves.html", moves=found, kinds=KINDS)


@page(router, "/webhooks")
async def list_webhooks(visit: Operates) -> Page:
    found = await visit.webhooks.page(**visit.paging)
    return Page("webhooks.html", webhooks=found, kinds=list(EventKind))


@action(router, "/webhooks")
async def add(visit: Administers, form: Submitted) -> Done | Page:
    """Respond with the secret itself, so that it is in no URL and no cookie."""
    issued = await visit.webhooks.add(NewWebhook(**_values(form)))
    if issued.secret is None:
        to = f"/webhooks/{issued.webhook.id}"
        return Done(f"Events are sent to {issued.webhook.url}.", to=to, leaves=True)
    return _made(issued)


@page(router, "/webhooks/{webhook_id}")
async def show(visit: Operates, webhook_id: RowId) -> Page:
    form = visit.asked
    state = next((each for each in DeliveryState if each == form.text("state")), None)
    found = await visit.webhooks.deliveries(webhook_id, state=state, **visit.paging)
    return Page(
        "webhook.html",
        webhook=await visit.webhooks.get(webhook_id),
        deliveries=found,
        states=list(DeliveryState),
        state=state,
        kinds=list(EventKind),
    )


@page(router, "/webhooks/{webhook_id}/messages/{message_id}")
async def show_message(visit: Operates, webhook_id: RowId, message_id: RowId) -> Page:
    message, event = await visit.webhooks.delivery(webhook_id, message_id)
    content = None if event is None else message_content(event)
    return Page(
        "webhook_message.html",
        webhook=await visit.webhooks.get(webhook_id),
        message=message,
        event=event,
        responses=[
            {**each, "at": datetime.fromisoformat(each["at"])} for each in message.responses
        ],
        body=content and orjson.dumps(content, option=orjson.OPT_INDENT_2).decode(),
    )


@action(router, "/webhooks/{webhook_id}/set")
async def change(visit: Administers, form: Submitted, webhook_id: RowId) -> Done:
    """Set all values of the form, also empty ones."""
    changed = (await visit.webhooks.change(webhook_id, cast(WebhookChanges, _values(form)))).webhook
    return Done(f"Webhook saved. Events are sent to {changed.url}.", to=f"/webhooks/{webhook_id}")


@action(router, "/webhooks/{webhook_id}/move")
async def move(visit: Administers, form: Submitted, webhook_id: RowId) -> Done:
    webhooks, to = visit.webhooks, f"/webhooks/{webhook_id}"
    match form.text("move"):
        case "enable":
            await webhooks.enable(webhook_id)
            return Done("Webhook enabled. Pending messages are sent.", to=to)
        case "disable":
            await webhooks.disable(webhook_id)
            return Done("Webhook disabled.", to=to)
        case "retry":
            message = form.number("message", least=1, most=LARGEST_BIGINT)
            done = await webhooks.retry(webhook_id, None if message is None else [message])
            return Done(f"{counted(done, 'message')} sent again.", to=to)
        case "remove":
            removed = await webhooks.remove(webhook_id)
            return Done(f"Webhook for {removed.url} deleted.", to="/webhooks", leaves=True)
        case _:
            raise InvalidInput("a webhook can be enabled, disabled, retried and removed")


@action(router, "/webhooks/{webhook_id}/test")
async def test(visit: Administers, form: Submitted, webhook_id: RowId) -> Done:
    sent = await send_test(visit.database, visit.settings, webhook_id)
    took = f"after {number(sent.seconds)} s"
    text = (
        f"Test message delivered {took}."
        if sent.taken
        else f"Test message failed {took}: {sent.error}."
    )
    return Done(text, to=f"/webhooks/{webhook_id}", failed=not sent.taken)


@action(router, "/webhooks/{webhook_id}/rotate")
async def rotate(visit: Administers, form: Submitted, webhook_id: RowId) -> Page:
    return _made(await visit.webhooks.rotate_secret(webhook_id))


def _values(form: Form) -> dict[str, Any]:
    return {
        "url": form.text("url"),
        "kinds": tuple(form.texts("kind")),
        "domain": form.optional("domain"),
        "allow_private": form.checked("allow_private"),
        "ordered": form.checked("ordered"),
    }


def _made(issued: Issued) -> Page:
    return Page("webhook_made.html", issued=issued)
