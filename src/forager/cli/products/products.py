"""`forager products`: product data, price history, search and exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from forager.api.models.products import ProductQuery
from forager.cli.model_flags import ModelFlags, moment
from forager.cli.options import (
    Cursor,
    Force,
    Limit,
    Output,
    Yes,
    option,
    switch,
)
from forager.cli.output import (
    STDOUT,
    Columns,
    Steps,
    counted,
    note,
    note_more,
    note_written,
    open_output,
    refuse_terminal,
    show_rows,
)
from forager.cli.products import product_views as views
from forager.cli.products.products_track import track
from forager.cli.running import CommandContext, answers, confirm, lists, runs
from forager.errors import InvalidInput
from forager.index.engine import open_engine
from forager.products import service
from forager.products.archiving import Moved, archive_products, restore_products
from forager.products.audit import Audit, audit_catalog, last_audit
from forager.products.export import (
    Export,
    ExportContent,
    ExportFormat,
    export_products,
    export_size,
)
from forager.products.filters import Filters, Order
from forager.products.lookup import image_of
from forager.products.offers import compare_offers
from forager.products.price_history import largest_changes, price_history
from forager.products.search import SearchPage, search_products

app = typer.Typer(help="Products: prices, stock, history, search, export.", no_args_is_help=True)

Which = Annotated[str, typer.Argument(metavar="PRODUCT", help="Product ID or URL.")]


def _filters(*without: str) -> ModelFlags:
    return ModelFlags(
        ProductQuery,
        to=ProductQuery.filters,
        without=without,
        has_problems="--problems/--no-problems",
    )


Wanted = Annotated[Filters, _filters("sku", "gtin")]


def _show_audit(found: Audit) -> None:
    if found.findings:
        columns: Columns = {
            "CONCERN": lambda each: each.concern.value,
            "COUNT>": "count",
            "WHAT": "meaning",
            "EXAMPLES…": lambda each: ", ".join(map(str, each.examples)),
        }
        show_rows(columns, found.findings)
    findings = counted(len(found.findings), "finding")
    note(f"{counted(found.checks, 'check')} in {found.seconds:.1f} s: {findings}")


@app.command()
@answers(_show_audit)
async def audit(
    here: CommandContext,
    last: bool = switch("Show the findings of the last audit instead.", "--last"),
) -> object:
    """Check the catalog for contradictory or stale data; workers do so every day."""
    return await (
        last_audit(here.database) if last else audit_catalog(here.database, here.settings)
    )


app.command()(track)


def _show_archived(done: Moved) -> None:
    products, prices = counted(done.products, "product"), counted(done.prices, "price")
    note(f"{products} and {prices} archived.")
    for path in done.files:
        typer.echo(path)


@app.command()
@answers(_show_archived)
async def archive(
    here: CommandContext,
    days: float = option("Days since the product was last seen.", default=180, min=1),
    yes: Yes = False,
) -> object:
    """Move products that were not seen for a long time to Parquet files, with their prices."""
    confirm(f"Take products that were not seen for {days:g} days out of the database?", yes=yes)
    return await archive_products(here.database, here.settings, days=days)


def _show_restored(done: Sequence[Moved]) -> None:
    products = counted(sum(each.products for each in done), "product")
    skipped = sum(each.skipped for each in done)
    note(f"{products} restored" + (f", {skipped:,} skipped." if skipped else "."))


@app.command()
@answers(_show_restored)
async def restore(
    here: CommandContext,
    files: Annotated[
        list[str], typer.Argument(help="Files that `archive` wrote, or their object names.")
    ],
) -> object:
    """Restore archived products. Products that exist again are not changed."""
    return [await restore_products(here.database, here.settings, path) for path in files]


@app.command("list")
@lists(
    views.PRODUCT_COLUMNS,
    none="There are no such products. `forager products track URL` adds one.",
)
async def list_(
    here: CommandContext,
    wanted: Annotated[Filters, _filters()],
    order: Order = option("Sort order.", default=Order.NEWEST),
    limit: Limit = 20,
    cursor: Cursor = None,
) -> object:
    """List products, newest first. Sorted by price, those without a price come last."""
    return await service.list_products(
        here.database, wanted, order=order, cursor=cursor, limit=limit
    )


@app.command()
@answers(views.show_details)
async def show(here: CommandContext, product: Which) -> object:
    """Show all data of one product, with the confidence of each field."""
    return await service.show_product(here.database, product)


@app.command()
@lists(views.show_history, none="No price changes in this period.")
async def history(
    here: CommandContext,
    product: Which,
    variant: str | None = option("Only this variant, by SKU, GTIN, URL or name."),
    since: str | None = option("Only changes since this time: 30d, 2026-01-31.", metavar="WHEN"),
    limit: Limit = 100,
    cursor: Cursor = None,
) -> object:
    """Show the price history of a product, newest first, with a small chart."""
    return await price_history(
        here.database, product, variant=variant, since=moment(since), cursor=cursor, limit=limit
    )


def _show_found(page: SearchPage) -> None:
    if page.items:
        show_rows(views.PRODUCT_COLUMNS, page.items)
    elif page.note is None:
        note("Nothing matches.")
    if page.note is not None:
        note(page.note)
    if page.capped:
        note("Too many products match, so only some were ranked. Add words to narrow the search.")
    note_more(page.next_cursor)


@app.command()
@answers(_show_found)
async def search(
    here: CommandContext,
    words: Annotated[
        list[str], typer.Argument(help='Words, "exact phrases", -without, a or b, a SKU, a GTIN.')
    ],
    wanted: Wanted,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> object:
    """Search names, brands, categories and descriptions. Words that begin with - go after --."""
    async with open_engine(here.settings) as engine:
        return await search_products(
            here.database,
            " ".join(words),
            wanted,
            cursor=cursor,
            limit=limit,
            engine=engine,
        )


@app.command()
@runs
async def export(
    here: CommandContext,
    format_: ExportFormat = option("Output format.", "--format", "-f", default=ExportFormat.JSONL),
    output: Output = STDOUT,
    prices: bool = switch("Write one row per price change instead.", "--history"),
    offers: bool = switch("Write one row per matching offer of another shop instead.", "--offers"),
    columns: str | None = option(
        "Columns to write.", metavar="NAME,…|all", show_default="those of `products list`"
    ),
    since: str | None = option("With --history: only changes since this time.", metavar="WHEN"),
    *,
    wanted: Wanted,
    force: Force = False,
) -> None:
    """Write products to a file, which appears once it is complete: CSV, JSON lines, Parquet."""
    if since is not None and not prices:
        raise InvalidInput("--since is for --history", hint="Or give --changed-since.")
    if prices and offers:
        raise InvalidInput("a file has price changes or offers", hint="Give one of both options.")
    if format_ is ExportFormat.PARQUET:
        refuse_terminal(output, "a parquet file")
    named = tuple(filter(None, (name.strip() for name in (columns or "").split(","))))
    content = ExportContent.HISTORY if prices else ExportContent.PRODUCTS
    content = ExportContent.OFFERS if offers else content
    order = Export(format_, wanted, content, moment(since), named)
    total = await export_size(here.database, order)
    with open_output(output, force=force) as file, Steps("exporting", total) as steps:
        written = await export_products(here.database, order, file, steps.advance)
    note_written(counted(written, "row"), output)


@app.command()
@answers(views.OFFER_COLUMNS)
async def offers(
    here: CommandContext,
    which: Annotated[
        str, typer.Argument(metavar="GTIN|PRODUCT", help="GTIN, or product ID or URL.")
    ],
) -> object:
    """Compare the offers of the same article in all shops, cheapest first."""
    return await compare_offers(here.database, which)


@app.command()
@answers(views.MOVE_COLUMNS, none="No price has changed since then.")
async def changes(
    here: CommandContext,
    wanted: Wanted,
    since: str = option(
        "Compare with the prices at this time: 7d, 12h, 2026-01-31.", default="7d", metavar="WHEN"
    ),
    limit: Limit = 20,
) -> object:
    """List the largest price changes in percent since a given time."""
    start = moment(since)
    assert start is not None
    return await largest_changes(here.database, start, wanted, limit=limit)


@app.command()
@runs
async def image(
    here: CommandContext,
    product: Which,
    position: Annotated[
        int, typer.Argument(min=0, max=2**31 - 1, help="Position, as listed by `show`.")
    ],
    output: Output = STDOUT,
    force: Force = False,
) -> None:
    """Save a stored image of a product."""
    refuse_terminal(output, "an image")
    data = await image_of(here.database, here.settings, product, position)
    with open_output(output, force=force) as file:
        file.write(data)


@app.command()
@answers(views.show_stats)
async def stats(here: CommandContext) -> object:
    """Show statistics of all products."""
    return await service.product_stats(here.database)
