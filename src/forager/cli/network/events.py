"""`forager events`: list events of products and domains."""

from __future__ import annotations

import typer

from forager.cli.model_flags import moment
from forager.cli.options import Cursor, Domain, Limit, option
from forager.cli.output import Columns, on_one_line
from forager.cli.running import CommandContext, lists
from forager.web.event_text import summary_of
from forager.webhooks.events import EventKind, list_events
from forager.webhooks.webhook import EventRow

LONGEST = 300

app = typer.Typer(help="Events of products and domains, as sent to webhooks.", no_args_is_help=True)


@app.callback()
def events() -> None:
    """Events of products and domains, as sent to webhooks."""


def words_of(event: EventRow) -> str:
    """Describe an event in one line; of an unknown kind, list the values by name."""
    if event.kind in list(EventKind):
        parts = [str(event.payload.get("name") or ""), summary_of(event)]
        summary = ": ".join(filter(None, parts))
    else:
        summary = ", ".join(f"{name}: {value}" for name, value in event.payload.items())
    return on_one_line(summary.replace("\N{NO-BREAK SPACE}", " "))[:LONGEST]


EVENT_COLUMNS: Columns = {
    "ID>": "id",
    "WHEN": "occurred_at",
    "KIND": "kind",
    "PRODUCT>": "product_id",
    "DOMAIN": "domain",
    "WHAT…": words_of,
}


@app.command("list")
@lists(EVENT_COLUMNS, none="No events match.")
async def list_(
    here: CommandContext,
    kind: str | None = option("Only this kind, such as product.price_changed."),
    domain: Domain = None,
    product: int | None = option("Only events of this product.", min=1, max=2**63 - 1),
    since: str | None = option(
        "Only events since this time: 2d, 12h, or 2026-01-31T12:00Z.", metavar="WHEN"
    ),
    limit: Limit = 50,
    cursor: Cursor = None,
) -> object:
    """List events, newest first."""
    return await list_events(
        here.database,
        kind=kind,
        domain=domain,
        product_id=product,
        since=moment(since),
        cursor=cursor,
        limit=limit,
    )
