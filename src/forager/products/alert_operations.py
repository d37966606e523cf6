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
    example,
    listed,
)
from forager.operations.operation import Context, Group
from forager.products import alerts as service
from forager.products import product
from forager.products.alerts import AlertKind, NewAlert

alerts = Group(
    "alerts",
    "Alert rules: new offers that meet one are `product.alert` events, sent to webhooks.",
    page="Alerts",
)


class AlertRule(ResponseModel, row=product.AlertRule):
    """A condition on new offers, of one product or of a selection."""

    kind: AlertKind
    percent: Amount | None = Field(description="Minimum drop in percent.")
    amount: Amount | None = Field(description="Prices below this amount trigger the rule.")
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
        default=None, description="For `price_drop`: minimum drop in percent."
    )
    amount: Decimal | None = Field(
        default=None, description="For `price_below`: prices below this amount trigger the rule."
    )
    currency: Annotated[PlainText, Field(max_length=3)] | None = Field(
        default=None, description="Only prices in this currency."
    )
    days: int | None = Field(
        default=None,
        description="For `new_low`: compare with the prices of this many days. For `price_drop`:"
        " compare with their highest price instead of the last one.",
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


@alerts.operation(
    "delete", "DELETE /alerts/{rule_id}", done="deleted alert rule {id}", button="Delete"
)
async def delete_alert(
    context: Context, rule_id: Annotated[RowId, Field(description="ID of the alert rule.")]
) -> AlertRule:
    """Delete an alert rule. Its past events stay."""
    return AlertRule.of(await service.delete_alert(context.database, rule_id))
