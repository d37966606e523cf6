"""`forager alerts`: rules on prices and stock."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from forager.cli.options import Cursor, Limit, option
from forager.cli.output import Columns
from forager.cli.products.products import amount_of
from forager.cli.running import CommandContext, answers, lists
from forager.products.alerts import AlertKind, NewAlert, add_alert, delete_alert, list_alerts

app = typer.Typer(
    help="Alert rules: new offers that meet one are `product.alert` events, sent to webhooks.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True)
class RuleOptions:
    kind: Annotated[AlertKind, typer.Argument(help="What triggers the rule.")]
    percent: str | None = option("For price_drop: minimum drop in percent.")
    amount: str | None = option("For price_below: prices below this amount.")
    currency: str | None = option("Only prices in this currency.", metavar="CODE")
    days: int | None = option(
        "For new_low: number of days to compare with. For price_drop: compare with"
        " the highest price of these days instead of the last one."
    )
    product: str | None = option("One product, by its ID or URL.")
    domain: str | None = option("Only products of this domain.")
    brand: str | None = option("Only products of this brand.")
    category: str | None = option("Only products with this in their category path.")
    gtin: str | None = option("Only offers of this GTIN, EAN or UPC, in all shops.")

    def value(self) -> NewAlert:
        given = asdict(self)
        amounts = {name: amount_of(given[name]) for name in ("percent", "amount")}
        return NewAlert(**{**given, **amounts})


@app.command()
@answers(lambda rule: f"added alert rule {rule.id}: {rule.condition}, {rule.scope}")
async def add(here: CommandContext, rule: Annotated[NewAlert, RuleOptions]) -> object:
    """Add a rule. It triggers once when an offer meets it, and again after it was not met."""
    return await add_alert(here.database, rule)


RULE_COLUMNS: Columns = {
    "ID>": "id", "CONDITION": "condition", "PRODUCTS…": "scope", "CREATED": "created_at",
}  # fmt: skip


@app.command("list")
@lists(RULE_COLUMNS, none="There are no alert rules. `forager alerts add KIND` adds one.")
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List alert rules."""
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
    return await delete_alert(here.database, rule)
