"""`forager products`: what shops offer, how their prices went, and files of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.options import AsJson, Cursor, Force, Limit, Output, Yes, grouped, moment, option
from forager.cli.output import (
    STDOUT,
    Columns,
    Steps,
    counted,
    note,
    note_more,
    open_output,
    refuse_terminal,
    show_json,
    show_list,
    show_rows,
    silence_stdout,
)
from forager.cli.products import product_views as views
from forager.cli.products.products_track import track
from forager.cli.running import CommandContext, answers, confirm, lists, with_database
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forager.db.database import Database
    from forager.products.archiving import Moved
    from forager.products.audit import Audit
    from forager.products.export import Export
    from forager.products.filters import Filters
    from forager.products.search import SearchPage
    from forager.settings import Settings


@dataclass(frozen=True, slots=True)
class ProductOptions:
    """Options that select products."""

    min_price: str | None = option("Minimum price.", metavar="AMOUNT")
    max_price: str | None = option("Maximum price.", metavar="AMOUNT")
    currency: str | None = option("Only products priced in this currency.", metavar="CODE")
    availability: list[str] | None = option("in_stock, out_of_stock, … (repeatable).")
    min_rating: str | None = option("Minimum rating.", metavar="STARS")
    brand: str | None = option("Only this brand.")
    category: str | None = option("Only categories that contain this: 'Shoes', 'Men > Shoes'.")
    domain: str | None = option("Only this host, its subdomains, or the domain that covers it.")
    changed_since: str | None = option(
        "Only products changed since this time: 2d, 12h, 2026-01-31T12:00Z.", metavar="WHEN"
    )
    problems: bool | None = option(
        "Only products with, or without, problems.", "--problems/--no-problems"
    )

    def filters(self, **more: Any) -> Filters:
        from forager.products.filters import Filters

        return Filters(
            min_price=amount_of(self.min_price),
            max_price=amount_of(self.max_price),
            currency=self.currency,
            availability=tuple(self.availability or ()),
            min_rating=amount_of(self.min_rating),
            brand=self.brand,
            category=self.category,
            domain=self.domain,
            changed_since=moment(self.changed_since),
            has_problems=self.problems,
            **more,
        )


def column_names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (text or "").split(","))))


def amount_of(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text.strip()[:40])
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not a number", hint="Write it as 49.90.") from None


def archive(
    context: typer.Context,
    days: float = option("Days since the product was last seen.", default=180, min=1),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move products that were not seen for a long time to Parquet files, with their prices."""
    from forager.products.archiving import archive_products

    confirm(f"Take products that were not seen for {days:g} days out of the database?", yes=yes)
    done = with_database(context, lambda db, settings: archive_products(db, settings, days=days))
    if as_json:
        return show_json(done)
    products, prices = counted(done.products, "product"), counted(done.prices, "price")
    note(f"{products} and {prices} archived.")
    for path in done.files:
        typer.echo(path)
    return None


def _show_restored(done: Sequence[Moved]) -> None:
    products = counted(sum(each.products for each in done), "product")
    skipped = sum(each.skipped for each in done)
    note(f"{products} restored" + (f", {skipped:,} skipped." if skipped else "."))


@answers(_show_restored)
async def restore(
    here: CommandContext,
    files: Annotated[
        list[str], typer.Argument(help="Files that `archive` wrote, or their object names.")
    ],
) -> object:
    """Restore archived products. Products that exist again are not changed."""
    from forager.products.archiving import restore_products

    return [await restore_products(here.database, here.settings, path) for path in files]


def _show(found: Audit) -> None:
    if found.findings:
        columns: Columns = {
            "CONCERN": lambda each: each.concern.value,
            "COUNT>": "count",
            "WHAT": "meaning",
            "EXAMPLES…": lambda each: ", ".join(map(str, each.examples)),
        }
        show_rows(columns, found.findings)
    note(
        f"{counted(found.checks, 'check')} in {found.seconds:.1f} s:"
        f" {counted(len(found.findings), 'finding')}"
    )


@answers(_show)
async def audit(
    here: CommandContext,
    last: bool = option("Show the findings of the last audit instead.", "--last", default=False),
) -> object:
    """Check the catalog for contradictory or stale data; workers do so every day."""
    from forager.products.audit import audit_catalog, last_audit

    if last:
        return await last_audit(here.database)
    return await audit_catalog(here.database, here.settings)


app = typer.Typer(help="Products: prices, stock, history, search, export.", no_args_is_help=True)
app.command("audit")(audit)

app.command()(track)
app.command("archive")(archive)
app.command("restore")(restore)

Which = Annotated[str, typer.Argument(metavar="PRODUCT", help="Product ID or URL.")]


class Order(StrEnum):
    """As in the products package, which is not imported before a command needs it."""

    NEWEST = "newest"
    UPDATED = "updated"
    NAME = "name"
    CHEAPEST = "cheapest"
    DEAREST = "dearest"


class Format(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


@app.command("list")
@grouped
def list_(
    context: typer.Context,
    options: ProductOptions,
    sku: str | None = option("Only products with this SKU."),
    gtin: str | None = option("Only products with this GTIN, EAN or UPC."),
    order: Order = option("Sort order.", default=Order.NEWEST),
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List products, newest first. Sorted by price, those without a price come last."""
    from forager.products import filters
    from forager.products import service as products

    wanted = options.filters(sku=sku, gtin=gtin)
    page = with_database(
        context,
        lambda db, _: products.list_products(
            db, wanted, order=filters.Order(order), cursor=cursor, limit=limit
        ),
    )
    none = "There are no such products. `forager products track URL` adds one."
    return show_list(page, as_json, views.PRODUCT_COLUMNS, none=none)


@app.command()
@answers(views.show_details)
async def show(here: CommandContext, product: Which) -> object:
    """Show all data of one product, with the confidence of each field."""
    from forager.products.service import show_product

    return await show_product(here.database, product)


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
    from forager.products.price_history import price_history

    return await price_history(
        here.database, product, variant=variant, since=moment(since), cursor=cursor, limit=limit
    )


@app.command()
@grouped
def search(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(help='Words, "exact phrases", -without, a or b, a SKU, a GTIN.')
    ],
    options: ProductOptions,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Search names, brands, categories and descriptions. Words that begin with - go after --."""
    from forager.index.engine import open_engine
    from forager.products.search import search_products

    wanted = options.filters()

    async def found(database: Database, settings: Settings) -> SearchPage:
        async with open_engine(settings) as engine:
            return await search_products(
                database, " ".join(words), wanted, cursor=cursor, limit=limit, engine=engine
            )

    page = with_database(context, found)
    if as_json:
        return show_json(page)
    if page.items:
        show_rows(views.PRODUCT_COLUMNS, page.items)
    elif page.note is None:
        note("Nothing matches.")
    if page.note is not None:
        note(page.note)
    if page.capped:
        note("Too many products match, so only some were ranked. Add words to narrow the search.")
    return note_more(page.next_cursor)


@app.command()
@grouped
def export(
    context: typer.Context,
    format_: Format = option("Output format.", "--format", "-f", default=Format.JSONL),
    output: Output = STDOUT,
    prices: bool = option("Write one row per price change instead.", "--history", default=False),
    offers: bool = option(
        "Write one row per matching offer of another shop instead.", "--offers", default=False
    ),
    columns: str | None = option(
        "Columns to write.", metavar="NAME,…|all", show_default="those of `products list`"
    ),
    since: str | None = option("With --history: only changes since this time.", metavar="WHEN"),
    *,
    options: ProductOptions,
    force: Force = False,
) -> None:
    """Write products to a file, which appears once it is complete: CSV, JSON lines, Parquet."""
    from forager.products.export import Export, ExportContent, ExportFormat

    if since is not None and not prices:
        raise InvalidInput("--since is for --history", hint="Or give --changed-since.")
    if prices and offers:
        raise InvalidInput("a file has price changes or offers", hint="Give one of both options.")
    content = ExportContent.HISTORY if prices else ExportContent.PRODUCTS
    if format_ is Format.PARQUET:
        refuse_terminal(output, "a parquet file")
    filters = options.filters()
    wanted = Export(
        ExportFormat(format_),
        filters,
        ExportContent.OFFERS if offers else content,
        moment(since),
        column_names(columns),
    )

    async def write(database: Database, _: Settings) -> int:
        return await _export(database, wanted, output, force=force)

    try:
        written = with_database(context, write)
    except BrokenPipeError:
        return silence_stdout()
    place = "standard output" if output == STDOUT else output
    return note(f"{counted(written, 'row')} written to {place}.")


async def _export(database: Database, wanted: Export, output: str, *, force: bool) -> int:
    from forager.products.export import export_products, export_size

    total = await export_size(database, wanted)
    with open_output(output, force=force) as file, Steps("exporting", total) as steps:
        return await export_products(database, wanted, file, steps.advance)


@app.command()
@answers(views.OFFER_COLUMNS)
async def offers(
    here: CommandContext,
    which: Annotated[
        str, typer.Argument(metavar="GTIN|PRODUCT", help="GTIN, or product ID or URL.")
    ],
) -> object:
    """Compare the offers of the same article in all shops, cheapest first."""
    from forager.products.offers import compare_offers

    return await compare_offers(here.database, which)


@app.command()
@grouped
def changes(
    context: typer.Context,
    options: ProductOptions,
    since: str = option(
        "Compare with the prices at this time: 7d, 12h, 2026-01-31.", default="7d", metavar="WHEN"
    ),
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List the largest price changes in percent since a given time."""
    from forager.products.price_history import largest_changes

    start, filters = moment(since), options.filters()
    assert start is not None
    found = with_database(context, lambda db, _: largest_changes(db, start, filters, limit=limit))
    if as_json:
        return show_json(found)
    return (
        show_rows(views.MOVE_COLUMNS, found) if found else note("No price has changed since then.")
    )


@app.command()
def image(
    context: typer.Context,
    product: Which,
    position: Annotated[
        int, typer.Argument(min=0, max=2**31 - 1, help="Position, as listed by `show`.")
    ],
    output: Output = STDOUT,
    force: Force = False,
) -> None:
    """Save a stored image of a product."""
    from forager.products.lookup import image_of

    refuse_terminal(output, "an image")
    data = with_database(context, lambda db, settings: image_of(db, settings, product, position))
    with open_output(output, force=force) as file:
        file.write(data)


@app.command()
@answers(views.show_stats)
async def stats(here: CommandContext) -> object:
    """Show statistics of all products."""
    from forager.products.service import product_stats

    return await product_stats(here.database)
