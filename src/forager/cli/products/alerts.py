"""`forager alerts`: rules on prices and stock."""

from __future__ import annotations

from typing import Annotated

import typer

from forager.api.models.products import AlertOrder
from forager.cli.model_flags import ModelFlags
from forager.cli.options import Cursor, Limit
from forager.cli.output import Columns
from forager.cli.running import CommandContext, answers, lists
from forager.products.alerts import NewAlert, add_alert, delete_alert, list_alerts

app = typer.Typer(
    help="Alert rules: new offers that meet one are `product.alert` events, sent to webhooks.",
    no_args_is_help=True,
)


NewRule = Annotated[
    NewAlert,
    ModelFlags(AlertOrder, to=AlertOrder.new, kind=typer.Argument(help="What triggers the rule.")),
]


@app.command()
@answers(lambda rule: f"added alert rule {rule.id}: {rule.condition}, {rule.scope}")
async def add(here: CommandContext, rule: NewRule) -> object:
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
