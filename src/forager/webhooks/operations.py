"""Operations on webhooks: operators see them, admins change them."""

from __future__ import annotations

from typing import Annotated, Any, Self, cast

from pydantic import Field

from forager.errors import InvalidInput
from forager.events.event import EventKind
from forager.operations import models
from forager.operations.fields import FromFile
from forager.operations.models import (
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    RowId,
    Time,
    listed,
)
from forager.operations.operation import Columns, Context, Group, Scope
from forager.secrets import Vault
from forager.terminal import short_time
from forager.validation import matches
from forager.webhooks import service, webhook
from forager.webhooks.delivery import message_content, send_test

webhooks = Group(
    "webhooks",
    "Webhook URLs that receive events, and their deliveries.",
    page="Webhooks",
    sees=Scope.OPERATE,
    changes=Scope.ADMIN,
)

WebhookId = Annotated[RowId, Field(description="ID of the webhook.")]
InState = Annotated[service.DeliveryState, Field(description="Only messages in this state.")]
MessageId = Annotated[RowId, Field(description="ID of the message.")]
Secret = Annotated[
    PlainText,
    Field(
        min_length=service.SHORTEST_SECRET,
        max_length=service.LONGEST_SECRET,
        pattern=matches("^[!-~]+$", "ASCII characters without spaces"),
        description="Secret that messages are signed with; a random one by default.",
    ),
    FromFile(),
]


_ABOUT_WEBHOOK = {
    "failures": "Failed messages in a row.",
    "domain": "Only events of this domain; null: of all.",
    "pattern": "Only changes of pages and sections that match; null: all.",
    "url": "An HTTP URL, a `mailto:` address, or a channel without its secrets.",
}


class Webhook(ResponseModel, row=webhook.Webhook, hidden=("source_id",), about=_ABOUT_WEBHOOK):
    """A webhook that receives events, without its secret."""

    source: str | None = Field(
        validation_alias="source_id",
        description="Only events of this source and its versions; null: of all.",
    )
    kinds: list[EventKind] = Field(description="Events that are sent; empty: all kinds.")
    ordered: bool = Field(description="Whether events of one product arrive in order.")
    state: webhook.WebhookState = Field(description="Failing: the last message was refused.")
    active: bool = Field(validation_alias="is_active", description="Whether events are sent.")
    last_error: str | None = Field(description="Last response or error of a failing webhook.")
    retries_at: Time | None = Field(description="When delivery is retried; null: now.")
    waiting: int = Field(description="Number of pending messages.")
    recent_messages: int = Field(description="Messages that were tried, of the newest 100.")
    recent_failures: int = Field(description="Of these, messages that are not delivered.")


class IssuedWebhook(Webhook):
    """A webhook with its secret, which is shown once."""

    secret: str | None = Field(description="Null if messages are not signed, or if it is not new.")

    @classmethod
    def build(cls, issued: service.WebhookWithSecret) -> Self:
        return cls.of(issued.webhook, secret=issued.secret)


class WebhookOrder(RequestModel):
    """A webhook: its URL and its events."""

    model_config = models.example(url="https://hooks.example.org/a", kinds=["product.added"])

    url: PlainText = Field(
        min_length=1,
        max_length=service.MAX_URL,
        description="URL that events are posted to, `mailto:` and an e-mail address, or the URL "
        "of a channel, such as `slack://…` or `ntfy://…` (extra `notify`).",
    )
    kinds: list[EventKind] = Field(
        default_factory=list,
        max_length=20,
        description="Only these kinds of events. Default: all, for an address `product.alert`.",
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this domain."
    )
    source: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this source and its versions."
    )
    pattern: Annotated[PlainText, Field(min_length=1, max_length=2000)] | None = Field(
        default=None,
        description="Of `source.changed`, only pages whose URL matches, such as `/api/*`, and "
        "sections whose heading matches, such as `re:(?i)deprecated`.",
    )
    secret: Secret | None = None
    allow_private: bool = Field(default=False, description="Allow a private address.")
    ordered: bool = Field(
        default=False,
        description="Deliver events of one product in order: a failed one delays its later ones.",
    )


class WebhookPatch(WebhookOrder):
    """Values to change; omitted fields stay."""

    model_config = models.example(kinds=["product.price_changed"], active=True)

    url: PlainText = Field(
        default="", min_length=1, max_length=service.MAX_URL, description="The URL or address."
    )
    active: bool = Field(default=True, description="Whether events are sent.")


_ABOUT_DELIVERY = {
    "event_id": "ID of the event.",
    "next_attempt_at": "When the next attempt is due.",
    "sent_at": "When it was delivered.",
    "given_up_at": "When delivery was given up.",
    "kind": "Kind of the event, such as `price.changed`.",
}


class Delivery(ResponseModel, row=webhook.Delivery, hidden=("responses",), about=_ABOUT_DELIVERY):
    """One message to one webhook, and its outcome."""


class DeliveryResponse(ResponseModel):
    """The response to one attempt, bounded and without control characters."""

    attempt: int
    at: Time = Field(description="When the attempt ended.")
    status: int | None = Field(description="HTTP status or SMTP code; null: no response.")
    error: str | None = Field(description="Why the attempt failed; null: it succeeded.")
    seconds: float
    headers: dict[str, str] = Field(description="First 2 kB, without cookies.")
    body: str = Field(description="First 2 kB.")


class DeliveryDetails(Delivery):
    """A message with its payload and the responses to it."""

    payload: dict[str, Any] | None = Field(description="Null if the event was deleted.")
    responses: list[DeliveryResponse] = Field(description="Of the last attempts, newest first.")


class TestResult(ResponseModel):
    """The response to a test message."""

    taken: bool = Field(description="Whether the receiver accepted the message.")
    status: int | None = Field(description="HTTP status or SMTP code; null: no response.")
    error: str | None = Field(description="Why the test failed; null: it succeeded.")
    seconds: float


class RenewedMessages(ResponseModel):
    """How many messages are sent again."""

    webhook_id: int = Field(description="ID of the webhook.")
    messages: int = Field(description="Number of messages that are sent at once.")


def _state(found: Any) -> tuple[str, str]:
    if not found.active:
        return f"disabled: {found.disabled_reason}", "yellow"
    if found.retries_at is not None:
        return f"failing; next attempt {short_time(found.retries_at)}", "red"
    failing = f"failing: {found.failures} in a row"
    return (failing, "yellow") if found.failures else ("active", "green")


WEBHOOK_COLUMNS: Columns = {
    "ID>": "id", "URL": "url", "STATE": _state, "PENDING>": "waiting",
    "EVENTS": lambda found: ", ".join(found.kinds) or "all events", "DOMAIN?": "domain",
    "SOURCE?": "source",
}  # fmt: skip
DELIVERY_COLUMNS: Columns = {
    "MESSAGE>": "id", "EVENT>": "event_id", "KIND": "kind", "CREATED": "created_at",
    "SENT": "sent_at", "GIVEN UP?": "given_up_at", "ATTEMPTS>": "attempts",
    "NEXT": lambda found: None if found.sent_at else found.next_attempt_at, "ERROR": "last_error",
}  # fmt: skip


def _service(context: Context) -> service.Webhooks:
    return service.Webhooks(context.database, Vault(context.settings))


@webhooks.operation("list", "GET /webhooks", columns=WEBHOOK_COLUMNS)
async def list_webhooks(context: Context, paging: Paging) -> Listed[Webhook]:
    """List webhooks by ID, with their state."""
    return listed(await _service(context).page(**paging), Webhook.of)


@webhooks.operation(
    "add", "POST /webhooks", arguments=("url",), created=True, secret=True, button="Add"
)
async def add(context: Context, order: WebhookOrder) -> IssuedWebhook:
    """Send events to a URL or an e-mail address. The secret is only in this response."""
    new = service.NewWebhook(**{**dict(order), "kinds": tuple(order.kinds)})
    return IssuedWebhook.build(await _service(context).add(new))


@webhooks.operation("show", "GET /webhooks/{webhook_id}")
async def show(context: Context, webhook_id: WebhookId) -> Webhook:
    """Show a webhook."""
    return Webhook.of(await _service(context).get(webhook_id))


@webhooks.operation("set", "PATCH /webhooks/{webhook_id}", secret=True, button="Save")
async def change(context: Context, webhook_id: WebhookId, order: WebhookPatch) -> IssuedWebhook:
    """Change a webhook; omitted values stay. A new secret is only in this response."""
    if not (changes := order.given()):
        raise InvalidInput("nothing to change was given")
    wanted = cast(service.WebhookChanges, changes)
    return IssuedWebhook.build(await _service(context).change(webhook_id, wanted))


@webhooks.operation("remove", "DELETE /webhooks/{webhook_id}", confirm=True, button="Remove")
async def remove(context: Context, webhook_id: WebhookId) -> models.RemovedRow:
    """Delete a webhook and its pending messages."""
    return models.RemovedRow.of(await _service(context).remove(webhook_id))


@webhooks.operation("enable", "POST /webhooks/{webhook_id}/enable", button="Enable")
async def enable(context: Context, webhook_id: WebhookId) -> Webhook:
    """Resume deliveries to a webhook, starting with pending messages."""
    return Webhook.of(await _service(context).enable(webhook_id))


@webhooks.operation("disable", "POST /webhooks/{webhook_id}/disable", button="Disable")
async def disable(
    context: Context, webhook_id: WebhookId, reason: models.Reason | None = None
) -> Webhook:
    """Stop deliveries to a webhook until it is enabled again."""
    return Webhook.of(await _service(context).disable(webhook_id, reason))


@webhooks.operation(
    "rotate-secret", "POST /webhooks/{webhook_id}/rotate-secret", created=True, secret=True
)
async def rotate_secret(
    context: Context, webhook_id: WebhookId, secret: Secret | None = None
) -> IssuedWebhook:
    """Sign with a new secret from the next message on. It is only in this response."""
    return IssuedWebhook.build(await _service(context).rotate_secret(webhook_id, secret))


@webhooks.operation("test", "POST /webhooks/{webhook_id}/test", succeeded=lambda sent: sent.taken)
async def send(context: Context, webhook_id: WebhookId) -> TestResult:
    """Send a test message now and show the response."""
    return TestResult.of(await send_test(context.database, context.settings, webhook_id))


@webhooks.operation("deliveries", "GET /webhooks/{webhook_id}/deliveries", columns=DELIVERY_COLUMNS)
async def deliveries(
    context: Context, webhook_id: WebhookId, paging: Paging, state: InState | None = None
) -> Listed[Delivery]:
    """List messages to a webhook, newest first: sent, waiting or failed."""
    page = await _service(context).deliveries(webhook_id, state=state, **paging)
    return listed(page, Delivery.of)


@webhooks.operation("delivery", "GET /webhooks/{webhook_id}/deliveries/{message_id}")
async def show_delivery(
    context: Context, webhook_id: WebhookId, message_id: MessageId
) -> DeliveryDetails:
    """Show a message: its payload, and the responses to the last attempts.

    The payload is missing if the event is about a source of another owner.
    """
    found, event = await _service(context).delivery(webhook_id, message_id, user_id=context.owner)
    return DeliveryDetails.of(found, payload=None if event is None else message_content(event))


@webhooks.operation(
    "retry", "POST /webhooks/{webhook_id}/retry", arguments=("messages",), button="Retry failed"
)
async def retry(
    context: Context, webhook_id: WebhookId, messages: models.RowIds | None = None
) -> RenewedMessages:
    """Retry failed messages, and send pending ones at once."""
    done = await _service(context).retry(webhook_id, messages)
    return RenewedMessages(webhook_id=webhook_id, messages=done)
