"""Webhooks, what was sent to them, and the events that they hear of."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from forager.api.limits import MAX_BULK
from forager.api.models.values import (
    LARGEST_BIGINT,
    Amount,
    Order,
    PlainText,
    Reason,
    Time,
    View,
    example,
)
from forager.errors import InvalidInput
from forager.products.alerts import AlertKind, NewAlert
from forager.webhooks import service as values
from forager.webhooks.events import EventKind
from forager.webhooks.service import (
    LONGEST_SECRET,
    MAX_URL,
    SHORTEST_SECRET,
    NewWebhook,
    WebhookChanges,
)

Secret = Annotated[
    PlainText, Field(min_length=SHORTEST_SECRET, max_length=LONGEST_SECRET, pattern=r"^[!-~]+$")
]


ORDERED = "Deliver events of one product in order: a failed one delays its later ones."


class CatalogEvent(View):
    """Something that happened; its payload is as it was then."""

    id: int
    kind: EventKind
    product_id: int | None
    domain: str | None
    payload: dict[str, Any]
    occurred_at: Time


class AlertRule(View):
    """A condition on new offers, of one product or of a selection."""

    id: int
    kind: AlertKind
    percent: Amount | None = Field(description="Minimum drop in percent.")
    amount: Amount | None = Field(description="Prices below this amount trigger the rule.")
    currency: str | None = Field(description="Only prices in this currency.")
    days: int | None = Field(description="Number of days to compare with.")
    product_id: int | None
    product_url: str | None
    selection: dict[str, str] = Field(description="Filters of products; empty: all products.")
    created_at: Time


_Named = Annotated[PlainText, Field(min_length=1, max_length=1000)] | None


class AlertOrder(Order):
    """A rule for one product, or for all that match `domain`, `brand`, `category` and `gtin`."""

    model_config = example(kind="price_drop", percent="5")

    kind: AlertKind
    percent: Decimal | None = Field(default=None, description="Of `price_drop`: at least this.")
    amount: Decimal | None = Field(default=None, description="Of `price_below`.")
    currency: Annotated[PlainText, Field(max_length=3)] | None = Field(
        default=None, description="Only prices in this currency."
    )
    days: int | None = Field(
        default=None,
        description="Of `new_low`: compare with the prices of these days. Of `price_drop`: compare"
        " with their highest price instead of the last one.",
    )
    product: _Named = Field(default=None, description="ID or URL of one product.")
    domain: _Named = Field(default=None, description="Only products of this domain.")
    brand: _Named = Field(default=None, description="Only products of this brand.")
    category: _Named = Field(default=None, description="Only with this in the category path.")
    gtin: _Named = Field(default=None, description="Only offers of this GTIN, in all shops.")

    def new(self) -> NewAlert:
        return NewAlert(**self.model_dump())


class Webhook(View):
    """An address that hears of events, without its secret."""

    id: int
    url: str
    kinds: list[EventKind] = Field(description="Empty: all kinds.")
    domain: str | None
    allow_private: bool
    ordered: bool = Field(description="Whether events of one product arrive in order.")
    active: bool = Field(validation_alias="is_active")
    disabled_reason: str | None
    failures: int
    retries_at: Time | None = Field(validation_alias="rests_until")
    waiting: int = Field(description="Messages that are still to be taken.")
    created_at: Time
    updated_at: Time


class IssuedWebhook(Webhook):
    """A webhook with its secret, which is shown this once."""

    secret: str = Field(examples=["fgs_…"])

    @classmethod
    def of_issued(cls, issued: values.Issued) -> IssuedWebhook:
        shown = Webhook.of(issued.webhook).model_dump()
        return cls.model_validate({**shown, "secret": issued.secret})


class ChangedWebhook(Webhook):
    """A webhook after a change."""

    secret: str | None = Field(description="Only if it is new; it is shown this once.")

    @classmethod
    def of_changed(cls, changed: values.Changed) -> ChangedWebhook:
        shown = Webhook.of(changed.webhook).model_dump()
        return cls.model_validate({**shown, "secret": changed.secret})


class WebhookOrder(Order):
    model_config = example(url="https://hooks.example.org/prices", kinds=["product.price_changed"])

    url: Annotated[PlainText, Field(min_length=1, max_length=MAX_URL)]
    kinds: list[EventKind] = Field(
        default_factory=list, max_length=20, description="By default all."
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this domain."
    )
    secret: Secret | None = Field(default=None, description="By default a new one is made.")
    allow_private: bool = Field(default=False, description="Allow a private address.")

    ordered: bool = Field(default=False, description=ORDERED)

    def new(self) -> NewWebhook:
        return NewWebhook(
            self.url,
            tuple(self.kinds),
            self.domain,
            self.secret,
            self.allow_private,
            self.ordered,
        )


class WebhookPatch(Order):
    """What to change; what is left out stays."""

    model_config = example(kinds=["product.price_changed"], active=True)

    url: Annotated[PlainText, Field(min_length=1, max_length=MAX_URL)] = ""
    kinds: list[EventKind] = Field(
        default_factory=list, max_length=20, description="Empty: all kinds."
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only events of this domain; null: of all."
    )
    allow_private: bool = Field(default=False, description="Allow a private address.")
    ordered: bool = Field(default=False, description=ORDERED)
    active: bool = Field(default=True, description="Whether events are sent to it.")
    secret: Secret | None = Field(
        default=None, description="Sign with this from now on; null: a new one is made."
    )

    def changes(self) -> WebhookChanges:
        """What was given; null is a value too."""
        if not self.model_fields_set:
            raise InvalidInput("nothing to change was given")
        given = {name: getattr(self, name) for name in self.model_fields_set}
        if "kinds" in given:
            given["kinds"] = tuple(given["kinds"])
        return WebhookChanges(**given)


class SecretOrder(Order):
    model_config = example()

    secret: Secret | None = Field(default=None, description="By default a new one is made.")


class DisableWebhookOrder(Order):
    model_config = example(reason="the receiver is being moved")

    reason: Reason | None = None


class RetryOrder(Order):
    model_config = example()

    messages: list[Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]] | None = Field(
        default=None, min_length=1, max_length=MAX_BULK, description="By default all."
    )


class Delivery(View):
    """One message to one webhook, and what became of it."""

    id: int
    event_id: int
    kind: str | None
    attempts: int
    last_error: str | None
    created_at: Time
    next_attempt_at: Time
    sent_at: Time | None
    given_up_at: Time | None


class TestResult(View):
    """What the receiver said to a test message."""

    taken: bool
    status: int | None
    error: str | None
    seconds: float


class RenewedMessages(View):
    webhook_id: int
    messages: int = Field(description="How many will be sent at once.")


class RemovedWebhook(View):
    id: int
