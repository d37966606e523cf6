"""Events of products, domains and jobs; webhooks and the outcome of each message to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import orjson

from forager.api.limits import RowId
from forager.errors import ForagerError, InvalidInput, NotFound
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.jobs.history import KINDS, list_moves
from forager.operations.models import LARGEST_BIGINT
from forager.web.formats import counted, number
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, attempt, new_router, page
from forager.web.sessions import read_secret
from forager.web.visit import AdminVisit, OperatorVisit, ReaderVisit, WebVisit
from forager.webhooks.delivery import message_content, send_test
from forager.webhooks.service import DeliveryState, NewWebhook, WebhookChanges, WebhookWithSecret

router = new_router()

FIELDS = ("url", "kinds", "domain", "allow_private", "ordered")


@page(router, "/events")
async def events(visit: ReaderVisit) -> WebPage:
    form = visit.asked
    found, problem = await attempt(
        lambda: list_events(
            visit.database,
            kind=form.optional("kind"),
            domain=form.optional("domain"),
            product_id=form.number("product", least=1, most=LARGEST_BIGINT),
            user_id=visit.caller.sees_only,
            **visit.paging,
        )
    )
    return WebPage("events.html", events=found, kinds=list(EventKind), problem=problem)


@page(router, "/events/jobs")
async def moves(visit: ReaderVisit) -> WebPage:
    kind, owner = visit.asked.optional("kind"), visit.caller.sees_only
    found = await list_moves(visit.database, move=kind, user_id=owner, **visit.paging)
    return WebPage("job_moves.html", moves=found, kinds=KINDS)


@page(router, "/webhooks")
async def list_webhooks(visit: OperatorVisit) -> WebPage:
    return await _webhooks(visit, {}, None)


async def _webhooks(visit: WebVisit, given: dict[str, Any], error: ForagerError | None) -> WebPage:
    """The list, and the form with its input."""
    return WebPage(
        "webhooks.html",
        webhooks=await visit.webhooks.page(**visit.paging),
        kinds=list(EventKind),
        given=given,
        problem=error,
    ).after(error)


@action(router, "/webhooks")
async def add(visit: AdminVisit, form: Submitted) -> Done | WebPage:
    try:
        return _issued(await visit.webhooks.add(NewWebhook(**_values(form))))
    except ForagerError as error:
        return await _webhooks(visit, _values(form), error)


@page(router, "/webhooks/{webhook_id}")
async def show(visit: OperatorVisit, webhook_id: RowId) -> WebPage:
    return await _webhook(visit, webhook_id, None, None)


async def _webhook(
    visit: WebVisit, webhook_id: int, given: dict[str, Any] | None, error: ForagerError | None
) -> WebPage:
    """A webhook with its deliveries, and the form with its input or the stored values."""
    form = visit.asked
    webhook = await visit.webhooks.get(webhook_id)
    state = next((each for each in DeliveryState if each == form.text("state")), None)
    found = await visit.webhooks.deliveries(webhook_id, state=state, **visit.paging)
    return WebPage(
        "webhook.html",
        webhook=webhook,
        given=given or {name: getattr(webhook, name) for name in FIELDS},
        problem=error,
        deliveries=found,
        states=list(DeliveryState),
        state=state,
        kinds=list(EventKind),
    ).after(error)


@page(router, "/webhooks/{webhook_id}/messages/{message_id}")
async def show_message(visit: OperatorVisit, webhook_id: RowId, message_id: RowId) -> WebPage:
    message, event = await visit.webhooks.delivery(
        webhook_id, message_id, user_id=visit.caller.sees_only
    )
    content = None if event is None else message_content(event)
    return WebPage(
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
async def change(visit: AdminVisit, form: Submitted, webhook_id: RowId) -> Done | WebPage:
    """Set all values of the form, also empty ones."""
    values = cast(WebhookChanges, _values(form))
    try:
        changed = (await visit.webhooks.change(webhook_id, values)).webhook
    except NotFound:
        raise
    except ForagerError as error:
        return await _webhook(visit, webhook_id, _values(form), error)
    return Done(f"Webhook saved. Events are sent to {changed.url}.", to=f"/webhooks/{webhook_id}")


@action(router, "/webhooks/{webhook_id}/move")
async def move(visit: AdminVisit, form: Submitted, webhook_id: RowId) -> Done:
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
async def test(visit: AdminVisit, form: Submitted, webhook_id: RowId) -> Done:
    sent = await send_test(visit.database, visit.settings, webhook_id)
    took = f"after {number(sent.seconds)} s"
    text = (
        f"Test message delivered {took}."
        if sent.taken
        else f"Test message failed {took}: {sent.error}."
    )
    return Done(text, to=f"/webhooks/{webhook_id}", failed=not sent.taken)


@action(router, "/webhooks/{webhook_id}/rotate")
async def rotate(visit: AdminVisit, form: Submitted, webhook_id: RowId) -> Done:
    return _issued(await visit.webhooks.rotate_secret(webhook_id))


@page(router, "/webhooks/{webhook_id}/secret")
async def show_secret(visit: AdminVisit, webhook_id: RowId) -> WebPage:
    webhook = await visit.webhooks.get(webhook_id)
    return WebPage(
        "webhook_made.html", webhook=webhook, secret=read_secret(visit.request, visit.vault)
    )


def _values(form: Form) -> dict[str, Any]:
    return {
        "url": form.text("url"),
        "kinds": tuple(form.texts("kind")),
        "domain": form.optional("domain"),
        "allow_private": form.checked("allow_private"),
        "ordered": form.checked("ordered"),
    }


def _issued(issued: WebhookWithSecret) -> Done:
    """The next page shows the secret once; e-mail addresses have none."""
    place = f"/webhooks/{issued.webhook.id}"
    return Done(
        f"Events are sent to {issued.webhook.url}.",
        to=place if issued.secret is None else f"{place}/secret",
        leaves=True,
        secret=issued.secret,
    )
