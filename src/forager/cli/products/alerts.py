"""`forager alerts`: rules on prices and stock."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from forager.cli.options import AsJson, Cursor, Limit, option
from forager.cli.output import Columns, say, show_json
from forager.cli.products.products import amount_of
from forager.cli.running import CommandContext, answers, lists, with_database

app = typer.Typer(
    help="Alert rules: new offers that meet one are `product.alert` events, sent to webhooks.",
    no_args_is_help=True,
)


class Kind(StrEnum):
    """As in the products package, which is not imported before a command needs it."""

    PRICE_DROP = "price_drop"
    PRICE_BELOW = "price_below"
    NEW_LOW = "new_low"
    BACK_IN_STOCK = "back_in_stock"


@app.command()
def add(
    context: typer.Context,
    kind: Annotated[Kind, typer.Argument(help="What triggers the rule.")],
    percent: str | None = option("For price_drop: minimum drop in percent."),
    amount: str | None = option("For price_below: prices below this amount."),
    currency: str | None = option("Only prices in this currency.", metavar="CODE"),
    days: int | None = option(
        "For new_low: number of days to compare with. For price_drop: compare with"
        " the highest price of these days instead of the last one."
    ),
    product: str | None = option("One product, by its ID or URL."),
    domain: str | None = option("Only products of this domain."),
    brand: str | None = option("Only products of this brand."),
    category: str | None = option("Only products with this in their category path."),
    gtin: str | None = option("Only offers of this GTIN, EAN or UPC, in all shops."),
    as_json: AsJson = False,
) -> None:
    """Add a rule. It triggers once when an offer meets it, and again after it was not met."""
    from forager.products.alerts import AlertKind, NewAlert, add_alert

    new = NewAlert(
        AlertKind(kind),
        percent=amount_of(percent),
        amount=amount_of(amount),
        currency=currency,
        days=days,
        product=product,
        domain=domain,
        brand=brand,
        category=category,
        gtin=gtin,
    )
    rule = with_database(context, lambda database, _: add_alert(database, new))
    return (
        show_json(rule)
        if as_json
        else say(f"added alert rule {rule.id}: {rule.condition}, {rule.scope}")
    )


RULE_COLUMNS: Columns = {
    "ID>": "id", "CONDITION": "condition", "PRODUCTS…": "scope", "CREATED": "created_at",
}  # fmt: skip


@app.command("list")
@lists(RULE_COLUMNS, none="There are no alert rules. `forager alerts add KIND` adds one.")
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List alert rules."""
    from forager.products.alerts import list_alerts

    return await list_alerts(here.database, cursor=cursor, limit=limit)


@app.command()
@answers(lambda found: f"deleted alert rule {found.id}")
async def delete(
    here: CommandContext,
    rule: Annotated[
        int, typer.Argument(metavar="ID", min=1, max=2**63 - 1, help="ID of the alert rule.")
    ],
) -> object:
    """Delete an alert rule. Its past events stay."""
    from forager.products.alerts import delete_alert

    return await delete_alert(here.database, rule)
