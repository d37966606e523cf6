"""Events, alert rules, webhooks and their deliveries. Only admins change webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Self, cast

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from forager.api.idempotency import OnlyOnce
from forager.api.limits import Domain, Listed, Paged, RowId, listed
from forager.api.models import (
    LARGEST_BIGINT,
    MAX_BULK,
    Moment,
    Order,
    PlainText,
    Reason,
    Time,
    View,
    example,
)
from forager.api.models.products import AlertOrder, AlertRule
from forager.api.services import Administers, Operates, Reads
from forager.errors import InvalidInput
from forager.products import alerts
from forager.webhooks import webhook
from forager.webhooks.delivery import message_content, send_test
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.service import (
    LONGEST_SECRET,
    MAX_URL,
    SHORTEST_SECRET,
    DeliveryState,
    Issued,
    NewWebhook,
    WebhookChanges,
)

Secret = Annotated[
    PlainText, Field(min_length=SHORTEST_SECRET, max_length=LONGEST_SECRET, pattern=r"^[!-~]+$")
]


ORDERED = "Deliver events of one product in order: a failed one delays its later ones."


class CatalogEvent(View, row=webhook.EventRow, hidden=("domain_id",)):
    """An event, with the values at the time it occurred."""

    kind: EventKind


class Webhook(View, row=webhook.Webhook):
    """A webhook that receives events, without its secret."""

    kinds: list[EventKind] = Field(description="Empty: all kinds.")
    ordered: bool = Field(description="Whether events of one product arrive in order.")
    active: bool = Field(validation_alias="is_active")
    retries_at: Time | None = Field(validation_alias="rests_until")
    waiting: int = Field(description="Pending messages.")


class IssuedWebhook(Webhook):
    """A webhook with its secret, which is shown once."""

    secret: str | None = Field(examples=["fgs_…"], description="Null for an e-mail address.")

    @classmethod
    def build(cls, issued: Issued) -> Self:
        return cls.of(issued.webhook, secret=issued.secret)


class ChangedWebhook(IssuedWebhook):
    """A webhook after a change."""

    secret: str | None = Field(description="Only if it is new; shown once.")


class WebhookOrder(Order):
    model_config = example(url="https://hooks.example.org/prices", kinds=["product.price_changed"])

    url: Annotated[PlainText, Field(min_length=1, max_length=MAX_URL)] = Field(
        description="URL that events are posted to, or `mailto:` and an e-mail address."
    )
    kinds: list[EventKind] = Field(
        default_factory=list,
        max_length=20,
        description="All by default; for an e-mail address only `product.alert`.",
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this domain."
    )
    secret: Secret | None = Field(default=None, description="A random secret by default.")
    allow_private: bool = Field(default=False, description="Allow a private address.")

    ordered: bool = Field(default=False, description=ORDERED)

    def new(self) -> NewWebhook:
        return NewWebhook(**{**dict(self), "kinds": tuple(self.kinds)})


class WebhookPatch(Order):
    """Values to change; omitted fields stay."""

    model_config = example(kinds=["product.price_changed"], active=True)

    url: Annotated[PlainText, Field(min_length=1, max_length=MAX_URL)] = ""
    kinds: list[EventKind] = Field(
        default_factory=list, max_length=20, description="Empty: all kinds."
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this domain; null: of all domains."
    )
    allow_private: bool = Field(default=False, description="Allow a private address.")
    ordered: bool = Field(default=False, description=ORDERED)
    active: bool = Field(default=True, description="Whether events are sent.")
    secret: Secret | None = Field(
        default=None, description="Sign with this secret from now on; null: with a random one."
    )

    def changes(self) -> WebhookChanges:
        if not self.model_fields_set:
            raise InvalidInput("nothing to change was given")
        return cast(WebhookChanges, self.given())


class SecretOrder(Order):
    model_config = example()

    secret: Secret | None = Field(default=None, description="A random secret by default.")


class DisableWebhookOrder(Order):
    model_config = example(reason="the receiver is being moved")

    reason: Reason | None = None


class RetryOrder(Order):
    model_config = example()

    messages: list[Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]] | None = Field(
        default=None, min_length=1, max_length=MAX_BULK, description="All by default."
    )


class Delivery(View, row=webhook.Delivery, hidden=("responses",)):
    """One message to one webhook, and its outcome."""


class DeliveryResponse(View):
    """The response to one attempt, bounded and without control characters."""

    attempt: int
    at: Time = Field(description="When the attempt ended.")
    status: int | None = Field(description="HTTP status or SMTP code; null: no response.")
    error: str | None
    seconds: float
    headers: dict[str, str] = Field(description="First 2 kB, without cookies.")
    body: str = Field(description="First 2 kB.")


class DeliveryDetails(Delivery):
    """A message with its payload and the responses to it."""

    payload: dict[str, Any] | None = Field(description="Null if the event was deleted.")
    responses: list[DeliveryResponse] = Field(
        description="Responses to the last three attempts, newest first."
    )


class TestResult(View):
    """The response to a test message."""

    taken: bool
    status: int | None
    error: str | None
    seconds: float


class RenewedMessages(View):
    webhook_id: int
    messages: int = Field(description="Number of messages that are sent at once.")


class RemovedWebhook(View):
    id: int


router = APIRouter()

MessageId = Annotated[int, Path(ge=1, le=LARGEST_BIGINT, description="ID of the message.")]


@router.get("/events", tags=["events"])
async def events(
    here: Reads,
    paging: Paged,
    kind: EventKind | None = None,
    domain: Domain = None,
    product_id: Annotated[int | None, Query(ge=1, le=LARGEST_BIGINT)] = None,
    since: Annotated[
        Moment | None, Query(description="Only events from this time on; UTC without a zone.")
    ] = None,
) -> Listed[CatalogEvent]:
    """List events of products and domains, newest first."""
    page = await list_events(
        here.database, kind=kind, domain=domain, product_id=product_id, since=since, **paging
    )
    return listed(page, CatalogEvent.of)


@router.get("/alerts", tags=["alerts"])
async def list_alerts(here: Reads, paging: Paged) -> Listed[AlertRule]:
    """List alert rules by ID."""
    return listed(await alerts.list_alerts(here.database, **paging), AlertRule.of)


@router.post("/alerts", status_code=201, response_model=AlertRule, tags=["alerts"])
async def add_alert(order: AlertOrder, here: Operates, once: OnlyOnce) -> Response:
    """Add an alert rule: offers that meet it from now on are `product.alert` events."""
    new = order.new()
    return await once.do(
        lambda here: alerts.add_alert(here.database, new), AlertRule.of, status=201
    )


@router.delete("/alerts/{rule_id}", tags=["alerts"])
async def delete_alert(rule_id: RowId, here: Operates) -> AlertRule:
    """Delete an alert rule. Its past events stay."""
    return AlertRule.of(await alerts.delete_alert(here.database, rule_id))


@router.get("/webhooks", tags=["webhooks"])
async def list_webhooks(here: Operates, paging: Paged) -> Listed[Webhook]:
    """List webhooks by ID, with their state."""
    return listed(await here.webhooks.page(**paging), Webhook.of)


@router.post("/webhooks", status_code=201, response_model=IssuedWebhook, tags=["webhooks"])
async def add(order: WebhookOrder, here: Administers, once: OnlyOnce) -> Response:
    """Send events to a URL or an e-mail address. The secret is only in this response."""
    new = order.new()
    return await once.do(
        lambda here: here.webhooks.add(new), IssuedWebhook.build, status=201, secret=True
    )


@router.get("/webhooks/{webhook_id}", tags=["webhooks"])
async def show(webhook_id: RowId, here: Operates) -> Webhook:
    """Show a webhook."""
    return Webhook.of(await here.webhooks.get(webhook_id))


@router.patch("/webhooks/{webhook_id}", response_model=ChangedWebhook, tags=["webhooks"])
async def change(
    webhook_id: RowId, order: WebhookPatch, here: Administers, once: OnlyOnce
) -> Response:
    """Change a webhook; omitted fields stay. A new secret is only in this response."""
    changes = order.changes()
    return await once.do(
        lambda here: here.webhooks.change(webhook_id, changes),
        ChangedWebhook.build,
        status=200,
        secret=True,
    )


@router.delete("/webhooks/{webhook_id}", tags=["webhooks"])
async def remove(webhook_id: RowId, here: Administers) -> RemovedWebhook:
    """Delete a webhook and its pending messages."""
    return RemovedWebhook(id=(await here.webhooks.remove(webhook_id)).id)


@router.post("/webhooks/{webhook_id}/enable", tags=["webhooks"])
async def enable(webhook_id: RowId, here: Administers) -> Webhook:
    """Resume deliveries to a webhook, starting with pending messages."""
    return Webhook.of(await here.webhooks.enable(webhook_id))


@router.post("/webhooks/{webhook_id}/disable", tags=["webhooks"])
async def disable(
    webhook_id: RowId, here: Administers, order: DisableWebhookOrder | None = None
) -> Webhook:
    """Stop deliveries to a webhook until it is enabled again."""
    return Webhook.of(await here.webhooks.disable(webhook_id, order.reason if order else None))


@router.post(
    "/webhooks/{webhook_id}/rotate-secret",
    status_code=201,
    response_model=IssuedWebhook,
    tags=["webhooks"],
)
async def rotate_secret(
    webhook_id: RowId, here: Administers, once: OnlyOnce, order: SecretOrder | None = None
) -> Response:
    """Sign with a new secret from the next message on. It is only in this response."""
    secret = order.secret if order else None
    return await once.do(
        lambda here: here.webhooks.rotate_secret(webhook_id, secret),
        IssuedWebhook.build,
        status=201,
        secret=True,
    )


@router.post("/webhooks/{webhook_id}/test", tags=["webhooks"])
async def send(webhook_id: RowId, here: Administers) -> TestResult:
    """Send a test message now and show the response."""
    return TestResult.of(await send_test(here.database, here.settings, webhook_id))


@router.get("/webhooks/{webhook_id}/deliveries", tags=["webhooks"])
async def deliveries(
    webhook_id: RowId, here: Operates, paging: Paged, state: DeliveryState | None = None
) -> Listed[Delivery]:
    """List messages to a webhook, newest first."""
    page = await here.webhooks.deliveries(webhook_id, state=state, **paging)
    return listed(page, Delivery.of)


@router.get("/webhooks/{webhook_id}/deliveries/{message_id}", tags=["webhooks"])
async def show_delivery(
    webhook_id: RowId, message_id: MessageId, here: Operates
) -> DeliveryDetails:
    """Show a message: its payload, and the responses to the last attempts."""
    found, event = await here.webhooks.delivery(webhook_id, message_id)
    return DeliveryDetails.of(found, payload=None if event is None else message_content(event))


@router.post("/webhooks/{webhook_id}/retry", tags=["webhooks"])
async def retry(
    webhook_id: RowId, here: Administers, order: RetryOrder | None = None
) -> RenewedMessages:
    """Retry failed messages, and send pending ones at once."""
    done = await here.webhooks.retry(webhook_id, order.messages if order else None)
    return RenewedMessages(webhook_id=webhook_id, messages=done)
