"""Operations on alert rules."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from forager.operations.models import (
    Amount,
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    RowId,
    Time,
    example,
    listed,
)
from forager.operations.operation import Context, Group, Scope
from forager.products import product
from forager.products.alerts import preview
from forager.products.alerts import rules as service
from forager.products.alerts.rules import AlertKind, NewAlert

alerts = Group(
    "alerts",
    "Alert rules: new offers that meet one are `product.alert` events, sent to webhooks.",
    page="Alerts",
)


class AlertRule(
    ResponseModel,
    row=product.AlertRule,
    about={"product_url": "URL of the product; null: any product."},
):
    """A condition on new offers, of one product or of a selection."""

    kind: AlertKind = Field(description="The condition, such as a price below an amount.")
    percent: Amount | None = Field(description="Minimum change in percent.")
    amount: Amount | None = Field(description="Prices below, or above, trigger the rule.")
    last_triggered_at: Time | None = Field(description="When it last triggered; null: never.")
    currency: str | None = Field(description="Only prices in this currency.")
    days: int | None = Field(description="Number of days to compare with.")
    selection: dict[str, str] = Field(description="Filters of products; empty: all products.")
    condition: str = Field(description="The condition in words.", examples=["price below 40 EUR"])
    scope: str = Field(description="The products in words.", examples=["brand Lumen"])


_Named = Annotated[PlainText, Field(min_length=1, max_length=1000)] | None


class AlertOrder(RequestModel):
    """A rule for one product, or for all that match `domain`, `brand`, `category` and `gtin`."""

    model_config = example(kind="price_drop", percent="5")

    kind: AlertKind = Field(description="What triggers the rule.")
    percent: Decimal | None = Field(
        default=None, description="For `price_drop` and `price_rise`: minimum change in percent."
    )
    amount: Decimal | None = Field(
        default=None, description="For `price_below` and `price_above`: the limit."
    )
    currency: Annotated[PlainText, Field(max_length=3)] | None = Field(
        default=None, description="Only prices in this currency."
    )
    days: int | None = Field(
        default=None,
        description="For `new_low`: compare with the prices of this many days. For `price_drop`:"
        " compare with their highest price instead of the last one; for `price_rise`, the lowest.",
    )
    product: _Named = Field(default=None, description="ID or URL of one product.")
    domain: _Named = Field(default=None, description="Only products of this domain.")
    brand: _Named = Field(default=None, description="Only products of this brand.")
    category: _Named = Field(
        default=None, description="Only products with this in their category path."
    )
    gtin: _Named = Field(
        default=None, description="Only offers of this GTIN, EAN or UPC, in all shops."
    )

    def new(self) -> NewAlert:
        return NewAlert(**self.model_dump())


RULE_COLUMNS = {
    "ID>": "id", "CONDITION": "condition", "PRODUCTS…": "scope", "CREATED": "created_at",
    "LAST TRIGGERED": "last_triggered_at",
}  # fmt: skip


@alerts.operation(
    "list",
    "GET /alerts",
    columns=RULE_COLUMNS,
    none="There are no alert rules. `forager alerts add KIND` adds one.",
)
async def list_alerts(context: Context, paging: Paging) -> Listed[AlertRule]:
    """List alert rules by ID."""
    return listed(await service.list_alerts(context.database, **paging), AlertRule.of)


@alerts.operation(
    "add",
    "POST /alerts",
    arguments=("kind",),
    created=True,
    done="added alert rule {id}: {condition}, {scope}",
    button="Add",
)
async def add_alert(context: Context, order: AlertOrder) -> AlertRule:
    """Add an alert rule: offers that meet it from now on are `product.alert` events."""
    return AlertRule.of(await service.add_alert(context.database, order.new()))


class AlertChanges(RequestModel):
    """New values of a rule; its kind and its products stay."""

    model_config = example(percent="10")

    percent: Decimal | None = Field(default=None, description="Minimum change in percent.")
    amount: Decimal | None = Field(default=None, description="The limit of a price.")
    currency: Annotated[PlainText, Field(max_length=3)] | None = Field(
        default=None, description="Only prices in this currency."
    )
    days: int | None = Field(default=None, description="Number of days to compare with.")


@alerts.operation(
    "set",
    "PATCH /alerts/{rule_id}",
    done="changed alert rule {id}: {condition}, {scope}",
    button="Save",
)
async def change_alert(
    context: Context,
    rule_id: Annotated[RowId, Field(description="ID of the alert rule.")],
    order: AlertChanges,
) -> AlertRule:
    """Change the values of an alert rule."""
    changes = order.model_dump(exclude_unset=True)
    return AlertRule.of(await service.change_alert(context.database, rule_id, changes))


class WouldTrigger(ResponseModel, row=preview.WouldTrigger, about={
    "old": "Price before.", "new": "Price that would have triggered the rule.",
    "recorded_at": "When the price was recorded.",
}):  # fmt: skip
    """A recorded price that would have triggered a rule."""


class AlertPreview(ResponseModel, row=preview.AlertPreview, about={
    "times": "How often the rule would have triggered.",
    "products": "Products that would have triggered it.",
    "days": "Days that were replayed.",
    "is_complete": "False: too many products match, and only the first ones were replayed.",
}):  # fmt: skip
    """What a rule would have done with the recorded prices."""

    examples: list[WouldTrigger] = Field(description="The latest ones.")


class PreviewOrder(AlertOrder):
    """A rule to replay, without adding it."""

    last: Annotated[int, Field(ge=1, le=3650)] = Field(
        default=30, description="Number of days to replay."
    )

    def new(self) -> NewAlert:
        return NewAlert(**self.model_dump(exclude={"last"}))


@alerts.operation(
    "preview",
    "POST /alerts/preview",
    scope=Scope.READ,
    arguments=("kind",),
    done="would have triggered {times} times in {days} days, for {products} products",
)
async def preview_alert(context: Context, order: PreviewOrder) -> AlertPreview:
    """Show how often an alert rule would have triggered with the recorded prices."""
    found = await preview.preview_alert(context.database, order.new(), days=order.last)
    return AlertPreview.of(found)


@alerts.operation(
    "delete", "DELETE /alerts/{rule_id}", done="deleted alert rule {id}", button="Delete"
)
async def delete_alert(
    context: Context, rule_id: Annotated[RowId, Field(description="ID of the alert rule.")]
) -> AlertRule:
    """Delete an alert rule. Its past events stay."""
    return AlertRule.of(await service.delete_alert(context.database, rule_id))
