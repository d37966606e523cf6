"""`forager webhooks`: subscriptions to events, and their deliveries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from forager.cli.options import (
    AllowPrivate,
    Cursor,
    Limit,
    Yes,
    argument,
    option,
    switch,
)
from forager.cli.output import (
    Columns,
    counted,
    json_bytes,
    note,
    plain,
    read_input,
    say,
    short_time,
    show_facts,
)
from forager.cli.running import CommandContext, answers, confirm, lists
from forager.errors import InvalidInput
from forager.webhooks.delivery import message_content, send_test
from forager.webhooks.service import DeliveryState, Issued, NewWebhook, WebhookChanges
from forager.webhooks.webhook import Delivery, Webhook

app = typer.Typer(
    help="Webhook URLs that receive events, and their deliveries.", no_args_is_help=True
)

MAX_SECRET = 1000
ALL = "all"
ORDERED = "Deliver events of one product in order; a failed one delays its later ones."


WebhookId = Annotated[
    int, typer.Argument(metavar="ID", min=1, max=2**63 - 1, help="ID of the webhook.")
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        help="File with the secret that messages are signed with; - for standard input."
        " Without it, a random secret is created and shown once."
    ),
]


def _secret(file: Path | None) -> str | None:
    """Read a secret from a file, because other users of the machine can see command lines."""
    if file is None:
        return None
    try:
        return read_input(file, MAX_SECRET).decode("ascii").strip()
    except UnicodeDecodeError:
        raise InvalidInput("a secret consists of ASCII characters") from None


def _issued_document(issued: Issued) -> dict[str, Any]:
    return {**plain(issued.webhook), "secret": issued.secret}


def _show_issued(issued: Issued, action: str) -> None:
    say(f"{action} webhook {issued.webhook.id}: {issued.webhook.url}")
    if issued.secret is None:
        return note("E-mail needs the settings FORAGER_SMTP_URL and FORAGER_SMTP_FROM.")
    say(f"secret: {issued.secret}")
    return note("It is not shown again. Receivers verify signatures with it.")


@app.command()
@answers(lambda issued: _show_issued(issued, "added"), document=_issued_document)
async def add(
    here: CommandContext,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="URL that events are posted to, or mailto:ADDRESS for e-mail."
        ),
    ],
    kind: list[str] | None = option(
        "Only events of this kind (repeatable).", show_default="all; for e-mail product.alert"
    ),
    domain: str | None = option("Only events of this domain."),
    allow_private: AllowPrivate = False,
    ordered: bool = switch(ORDERED, "--ordered"),
    secret_file: SecretFile = None,
) -> object:
    """Send events to a URL or an e-mail address. A secret is shown once and stored encrypted."""
    secret = _secret(secret_file)
    new = NewWebhook(url, tuple(kind or ()), domain, secret, allow_private, ordered)
    return await here.webhooks.add(new)


def _show(webhook: Webhook) -> None:
    facts = {
        "id": webhook.id,
        "url": webhook.url,
        "state": _state(webhook)[0],
        "events": _wants(webhook),
        "private": "addresses allowed" if webhook.allow_private else "",
        "order": "in order for each product" if webhook.ordered else "",
        "waiting": webhook.waiting,
        "failures": webhook.failures or "",
        "added": webhook.created_at,
    }
    show_facts(facts)


def _state(webhook: Webhook) -> tuple[str, str]:
    if not webhook.is_active:
        return f"disabled: {webhook.disabled_reason}", "yellow"
    if webhook.rests_until is not None:
        return f"failing; next attempt {short_time(webhook.rests_until)}", "red"
    if webhook.failures:
        return f"failing: {webhook.failures} in a row", "yellow"
    return "active", "green"


def _wants(webhook: Webhook) -> str:
    kinds = ", ".join(webhook.kinds) or "all events"
    return f"{kinds} of {webhook.domain}" if webhook.domain else kinds


WEBHOOK_COLUMNS: Columns = {
    "ID>": "id",
    "URL": "url",
    "STATE": _state,
    "PENDING>": "waiting",
    "EVENTS": _wants,
}


@app.command("list")
@lists(WEBHOOK_COLUMNS, none="There are no webhooks. `forager webhooks add URL` adds one.")
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List webhooks with their state."""
    return await here.webhooks.page(cursor=cursor, limit=limit)


@app.command()
@answers(_show)
async def show(here: CommandContext, webhook: WebhookId) -> object:
    """Show one webhook."""
    return await here.webhooks.get(webhook)


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Values to change; `all` removes a filter."""

    url: str | None = option("URL that events are posted to.")
    kinds: list[str] | None = option(
        "Only events of this kind (repeatable).", "--events", metavar="KIND|all"
    )
    domain: str | None = option("Only events of this domain.", metavar="HOST|all")
    allow_private: bool | None = option(
        "Allow private and loopback addresses.", "--allow-private/--no-allow-private"
    )
    ordered: bool | None = option(ORDERED, "--ordered/--unordered")
    active: bool | None = option("Whether it receives events.", "--on/--off")
    rotate: bool = switch("Sign with a new secret, shown once.", "--rotate-secret")
    secret_file: SecretFile = None

    def value(self) -> WebhookChanges:
        changes = {name: value for name, value in asdict(self).items() if value is not None}
        if changes.pop("rotate") or "secret_file" in changes:
            changes["secret"] = _secret(changes.pop("secret_file", None))
        if kinds := changes.pop("kinds", None):
            changes["kinds"] = () if kinds == [ALL] else tuple(kinds)
        if changes.get("domain") == ALL:
            changes["domain"] = None
        if not changes:
            hint = "See `forager webhooks set --help`."
            raise InvalidInput("nothing to set was given", hint=hint)
        return cast(WebhookChanges, changes)


@app.command("set")
@answers(
    lambda done: _show(done.webhook) if done.secret is None else _show_issued(done, "changed"),
    document=lambda done: done.webhook if done.secret is None else _issued_document(done),
)
async def set_(
    here: CommandContext, webhook: WebhookId, changes: Annotated[WebhookChanges, WebhookOptions]
) -> object:
    """Change a webhook. Other values stay; pending messages go to the new URL."""
    return await here.webhooks.change(webhook, changes)


@app.command()
@answers(lambda found: f"removed webhook {found.id}: {found.url}")
async def remove(here: CommandContext, webhook: WebhookId, yes: Yes = False) -> object:
    """Delete a webhook and its pending messages."""
    found = await here.webhooks.get(webhook)
    confirm(f"Remove {found.url} with {counted(found.waiting, 'pending message')}?", yes=yes)
    return await here.webhooks.remove(webhook)


@app.command()
@answers(lambda found: f"enabled webhook {found.id}: {found.url}")
async def enable(here: CommandContext, webhook: WebhookId) -> object:
    """Resume deliveries to a webhook, starting with pending messages."""
    return await here.webhooks.enable(webhook)


@app.command()
@answers(lambda found: f"disabled webhook {found.id}: {found.url}")
async def disable(
    here: CommandContext,
    webhook: WebhookId,
    reason: str | None = option("Reason, shown in the list."),
) -> object:
    """Stop deliveries to a webhook until it is enabled again."""
    return await here.webhooks.disable(webhook, reason)


@app.command("rotate-secret")
@answers(lambda issued: _show_issued(issued, "new secret of"), document=_issued_document)
async def rotate_secret(
    here: CommandContext, webhook: WebhookId, secret_file: SecretFile = None
) -> object:
    """Sign with a new secret from the next message on."""
    return await here.webhooks.rotate_secret(webhook, _secret(secret_file))


@app.command("test")
@answers(
    lambda sent: (
        f"{'accepted' if sent.error is None else f'failed: {sent.error}'}"
        f" ({sent.seconds * 1000:.0f} ms)"
    ),
    document=lambda sent: {"taken": sent.taken, **plain(sent)},
    succeeded=lambda sent: sent.taken,
)
async def send(here: CommandContext, webhook: WebhookId) -> object:
    """Send a test message now, and show the response."""
    return await send_test(here.database, here.settings, webhook)


def _delivery_state(delivery: Delivery) -> tuple[str, str]:
    if delivery.sent_at is not None:
        return f"sent {short_time(delivery.sent_at)}", "green"
    if delivery.given_up_at is not None:
        return "failed", "red"
    return f"next attempt {short_time(delivery.next_attempt_at)}", "yellow"


DELIVERY_COLUMNS: Columns = {
    "MESSAGE>": "id",
    "EVENT>": "event_id",
    "KIND": "kind",
    "STATE": _delivery_state,
    "ATTEMPTS>": "attempts",
    "CREATED": "created_at",
    "LAST ERROR": "last_error",
}


@app.command()
@lists(DELIVERY_COLUMNS, none="No messages found.")
async def deliveries(
    here: CommandContext,
    webhook: WebhookId,
    state: DeliveryState | None = option("Only messages in this state."),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List messages to a webhook, newest first: sent, waiting or failed."""
    return await here.webhooks.deliveries(webhook, state=state, cursor=cursor, limit=limit)


def _show_delivery(shown: dict[str, Any]) -> None:
    found: Delivery = shown["delivery"]
    facts = {"message": found.id, "kind": found.kind, "state": _delivery_state(found)[0]}
    show_facts({**facts, "created": found.created_at})
    say("\nPayload", "bold")
    payload = shown["payload"]
    say("deleted" if payload is None else json_bytes(payload).decode().rstrip())
    for each in found.responses:
        say(f"\nAttempt {each['attempt']}, {each['at']} ({each['seconds']:g} s)", "bold")
        say(each["error"] or f"accepted with {each['status']}")
        say("\n".join(f"{name}: {value}" for name, value in each["headers"].items()))
        say(each["body"])


@app.command()
@answers(
    _show_delivery,
    document=lambda shown: {**plain(shown["delivery"]), "payload": shown["payload"]},
)
async def delivery(
    here: CommandContext,
    webhook: WebhookId,
    message: Annotated[
        int, typer.Argument(metavar="MESSAGE", min=1, max=2**63 - 1, help="ID of the message.")
    ],
) -> object:
    """Show a message: its payload, and the responses to the last attempts."""
    found, event = await here.webhooks.delivery(webhook, message)
    return {"delivery": found, "payload": None if event is None else message_content(event)}


@app.command()
@answers(
    lambda done: (
        f"{counted(done['messages'], 'message')} will be sent to webhook {done['webhook_id']}"
    )
)
async def retry(
    here: CommandContext,
    webhook: WebhookId,
    messages: list[int] | None = argument("Only these messages.", metavar="[MESSAGE]..."),
) -> object:
    """Retry failed messages, and send pending ones at once."""
    done = await here.webhooks.retry(webhook, messages or None)
    return {"webhook_id": webhook, "messages": done}
