"""`forager events`: what happened to products and domains."""

from __future__ import annotations

from typing import Annotated

import typer

from forager.cli.options import AsJson, Cursor, Limit
from forager.cli.output import show_list
from forager.cli.running import with_database

app = typer.Typer(
    name="events",
    help="What happened to products and domains, as webhooks are told it.",
    no_args_is_help=True,
)


@app.callback()
def events() -> None:
    """What happened to products and domains, as webhooks are told it."""


@app.command("list")
def list_(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option(help="Only this kind, such as product.price_changed.")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="Only events of this host, of hosts below it, or of the domain that covers it."
        ),
    ] = None,
    product: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="Only events of this product.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only events since: 2d, 12h, or 2026-01-31T12:00Z."),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List events, newest first."""
    from forager.cli.product_filters import moment
    from forager.cli.webhook_views import show_events
    from forager.webhooks.events import list_events

    page = with_database(
        context,
        lambda database, _: list_events(
            database,
            kind=kind,
            domain=domain,
            product_id=product,
            since=moment(since),
            cursor=cursor,
            limit=limit,
        ),
    )
    return show_list(page, as_json, show_events, none="There are no such events.")
