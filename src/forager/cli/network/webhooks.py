"""`forager webhooks`: subscriptions to events, and their deliveries."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.failures import FAILED
from forager.cli.options import AllowPrivate, AsJson, Cursor, Limit, Yes, argument, option
from forager.cli.output import (
    Columns,
    counted,
    json_bytes,
    long_time,
    note,
    plain,
    say,
    short_time,
    show_facts,
    show_json,
)
from forager.cli.running import (
    CommandContext,
    answers,
    confirm,
    lists,
    with_database,
    with_services,
)
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.webhooks.service import Issued
    from forager.webhooks.webhook import Delivery, Webhook


app = typer.Typer(
    help="Webhook URLs that receive events, and their deliveries.", no_args_is_help=True
)

MAX_SECRET = 1000
ORDERED = "Deliver events of one product in order; a failed one delays its later ones."


class State(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


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


@app.command()
def add(
    context: typer.Context,
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
    ordered: bool = option(ORDERED, "--ordered", default=False),
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Send events to a URL or an e-mail address. A secret is shown once and stored encrypted."""
    from forager.webhooks.service import NewWebhook

    new = NewWebhook(url, tuple(kind or ()), domain, _secret(secret_file), allow_private, ordered)
    issued = with_services(context, lambda here: here.webhooks.add(new))
    return _show_issued(issued, "added", as_json)


def show_webhook(webhook: Webhook) -> None:
    facts = {
        "id": webhook.id,
        "url": webhook.url,
        "state": _state(webhook)[0],
        "events": _wants(webhook),
        "private": "addresses allowed" if webhook.allow_private else "",
        "order": "in order for each product" if webhook.ordered else "",
        "waiting": webhook.waiting,
        "failures": webhook.failures or "",
        "added": long_time(webhook.created_at),
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
@answers(show_webhook)
async def show(here: CommandContext, webhook: WebhookId) -> object:
    """Show one webhook."""
    return await here.webhooks.get(webhook)


@app.command("set")
def set_(
    context: typer.Context,
    webhook: WebhookId,
    url: str | None = option("URL that events are posted to."),
    kind: list[str] | None = option(
        "Only events of this kind (repeatable).", "--events", metavar="KIND|all"
    ),
    domain: str | None = option("Only events of this domain.", metavar="HOST|all"),
    allow_private: bool | None = option(
        "Allow private and loopback addresses.", "--allow-private/--no-allow-private"
    ),
    ordered: bool | None = option(ORDERED, "--ordered/--unordered"),
    on: bool | None = option("Whether it receives events.", "--on/--off"),
    rotate: bool = option("Sign with a new secret, shown once.", "--rotate-secret", default=False),
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Change a webhook. Other values stay; pending messages go to the new URL."""
    given = {"url": url, "allow_private": allow_private, "active": on, "ordered": ordered}
    named: Any = {name: value for name, value in given.items() if value is not None}
    if kind:
        named["kinds"] = () if kind == ["all"] else tuple(kind)
    if domain is not None:
        named["domain"] = None if domain == "all" else domain
    if rotate or secret_file is not None:
        named["secret"] = _secret(secret_file)
    if not named:
        raise InvalidInput("nothing to set was given", hint="See `forager webhooks set --help`.")
    changed = with_services(context, lambda here: here.webhooks.change(webhook, named))
    return _show_changed(changed, as_json)


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
def rotate_secret(
    context: typer.Context,
    webhook: WebhookId,
    secret_file: SecretFile = None,
    as_json: AsJson = False,
) -> None:
    """Sign with a new secret from the next message on."""
    secret = _secret(secret_file)
    issued = with_services(context, lambda here: here.webhooks.rotate_secret(webhook, secret))
    return _show_issued(issued, "new secret of", as_json)


@app.command("test")
def send(context: typer.Context, webhook: WebhookId, as_json: AsJson = False) -> None:
    """Send a test message now, and show the response."""
    from forager.webhooks.delivery import send_test

    posted = with_database(context, lambda db, settings: send_test(db, settings, webhook))
    if as_json:
        show_json({"taken": posted.taken, **plain(posted)})
    else:
        what = "accepted" if posted.error is None else f"failed: {posted.error}"
        say(f"{what} ({posted.seconds * 1000:.0f} ms)")
    if not posted.taken:
        raise typer.Exit(FAILED)


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
    state: State | None = option("Only messages in this state."),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List messages to a webhook, newest first: sent, waiting or failed."""
    from forager.webhooks.service import DeliveryState

    wanted = None if state is None else DeliveryState(state.value)
    return await here.webhooks.deliveries(webhook, state=wanted, cursor=cursor, limit=limit)


@app.command()
def delivery(
    context: typer.Context,
    webhook: WebhookId,
    message: Annotated[
        int, typer.Argument(metavar="MESSAGE", min=1, max=2**63 - 1, help="ID of the message.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show a message: its payload, and the responses to the last attempts."""
    from forager.webhooks.delivery import message_content

    found, event = with_services(context, lambda here: here.webhooks.delivery(webhook, message))
    payload = None if event is None else message_content(event)
    if as_json:
        return show_json({**plain(found), "payload": payload})
    facts = {"message": found.id, "kind": found.kind, "state": _delivery_state(found)[0]}
    show_facts({**facts, "created": long_time(found.created_at)})
    say("\nPayload", "bold")
    say("deleted" if payload is None else json_bytes(payload).decode().rstrip())
    for each in found.responses:
        say(f"\nAttempt {each['attempt']}, {each['at']} ({each['seconds']:g} s)", "bold")
        say(each["error"] or f"accepted with {each['status']}")
        say("\n".join(f"{name}: {value}" for name, value in each["headers"].items()))
        say(each["body"])
    return None


def _retried(done: dict[str, int]) -> str:
    return f"{counted(done['messages'], 'message')} will be sent to webhook {done['webhook_id']}"


@app.command()
@answers(_retried)
async def retry(
    here: CommandContext,
    webhook: WebhookId,
    messages: list[int] | None = argument("Only these messages.", metavar="[MESSAGE]..."),
) -> object:
    """Retry failed messages, and send pending ones at once."""
    done = await here.webhooks.retry(webhook, messages or None)
    return {"webhook_id": webhook, "messages": done}


def _secret(file: Path | None) -> str | None:
    """From a file: every user of the machine can read command lines."""
    if file is None:
        return None
    try:
        stream = sys.stdin.buffer if str(file) == "-" else file.open("rb")
        with stream:
            return stream.read(MAX_SECRET).decode("ascii").strip()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidInput("a secret consists of ASCII characters") from None


def _show_changed(changed: Issued, as_json: bool) -> None:
    if changed.secret is not None:
        return _show_issued(changed, "changed", as_json)
    return show_json(changed.webhook) if as_json else show_webhook(changed.webhook)


def _show_issued(issued: Issued, what: str, as_json: bool) -> None:
    if as_json:
        return show_json({**plain(issued.webhook), "secret": issued.secret})
    say(f"{what} webhook {issued.webhook.id}: {issued.webhook.url}")
    if issued.secret is None:
        return note("E-mail needs the settings FORAGER_SMTP_URL and FORAGER_SMTP_FROM.")
    say(f"secret: {issued.secret}")
    return note("It is not shown again. Receivers verify signatures with it.")
