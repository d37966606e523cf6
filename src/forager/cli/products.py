"""`forager products`: what shops offer, how their prices went, and files of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import product_filters as options
from forager.cli.options import AsJson, Limit
from forager.cli.output import console, note, show_json, show_page, silence_stdout
from forager.cli.product_filters import filters_of, moment
from forager.cli.products_archive import archive, restore
from forager.cli.products_track import track
from forager.cli.sources import Cursor, with_database
from forager.cli.words import counted
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from forager.db.database import Database
    from forager.products.export import Export, Progress
    from forager.products.search import SearchPage
    from forager.settings import Settings
from typing import TYPE_CHECKING, Any

from forager.cli.output import show_table

if TYPE_CHECKING:
    from forager.products.audit import Audit


def audit(
    context: typer.Context,
    last: Annotated[
        bool, typer.Option("--last", help="Show what the last one found instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look now for what contradicts itself or grows old; workers do so every day."""
    from forager.products.audit import audit_catalog, last_audit

    if last:
        found = with_database(context, lambda db, _: last_audit(db))
    else:
        found = with_database(context, audit_catalog)
    return show_json(found) if as_json else _show(found)


def _show(found: Audit) -> None:
    if found.findings:
        columns: dict[str, dict[str, Any]] = {
            "CONCERN": {},
            "COUNT": {"justify": "right"},
            "WHAT": {},
            "EXAMPLES": {"cut": True},
        }
        show_table(
            columns,
            [
                (each.concern.value, each.count, each.meaning, ", ".join(map(str, each.examples)))
                for each in found.findings
            ],
        )
    note(
        f"{counted(found.checks, 'check')} in {found.seconds:.1f} s:"
        f" {counted(len(found.findings), 'finding')}"
    )


STDOUT = "-"

app = typer.Typer(
    name="products",
    help="What shops offer: prices, stock, histories, search, files.",
    no_args_is_help=True,
)
app.command("audit")(audit)

app.command()(track)
app.command("archive")(archive)
app.command("restore")(restore)

Which = Annotated[str, typer.Argument(metavar="PRODUCT", help="A product's id or URL.")]


class Order(StrEnum):
    """As in the catalogue, which is not imported before a command needs it."""

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
def list_(
    context: typer.Context,
    min_price: options.MinPrice = None,
    max_price: options.MaxPrice = None,
    currency: options.Currency = None,
    availability: options.Availability = None,
    min_rating: options.MinRating = None,
    brand: options.Brand = None,
    category: options.Category = None,
    domain: options.Domain = None,
    changed_since: options.ChangedSince = None,
    problems: options.Problems = None,
    sku: options.Sku = None,
    gtin: options.Gtin = None,
    order: Annotated[Order, typer.Option(help="Which come first.")] = Order.NEWEST,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """List products, the newest first; products without a price come last in orders by price."""
    from forager.cli import product_views as views
    from forager.products import filters
    from forager.products import service as products

    wanted = filters_of(
        min_price=min_price,
        max_price=max_price,
        currency=currency,
        availability=availability,
        min_rating=min_rating,
        brand=brand,
        category=category,
        domain=domain,
        changed_since=changed_since,
        problems=problems,
        sku=sku,
        gtin=gtin,
    )
    page = with_database(
        context,
        lambda db, _: products.list_products(
            db, wanted, order=filters.Order(order), cursor=cursor, limit=limit
        ),
    )
    if as_json:
        return show_page(views.plain(page.items), page.next_cursor)
    if not page.items:
        return note("There are no such products. `forager products track URL` adds one.")
    views.show_products(page.items)
    return _say_more(page.next_cursor)


@app.command()
def show(context: typer.Context, product: Which, as_json: AsJson = False) -> None:
    """Show everything that is known of one product, and how sure it is."""
    from forager.cli import product_views as views
    from forager.products.service import show_product

    found = with_database(context, lambda db, _: show_product(db, product))
    return show_json(views.plain(found)) if as_json else views.show_details(found)


@app.command()
def history(
    context: typer.Context,
    product: Which,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Changes since: 30d, 2026-01-31.", show_default=False),
    ] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Show how the price of a product went, the newest change first, with a small chart."""
    from forager.cli import product_views as views
    from forager.products.price_history import price_history

    page = with_database(
        context,
        lambda db, _: price_history(db, product, since=moment(since), cursor=cursor, limit=limit),
    )
    if as_json:
        return show_page(views.plain(page.items), page.next_cursor)
    if not page.items:
        return note("No change is known of that time.")
    views.show_history(page.items)
    return _say_more(page.next_cursor)


@app.command()
def search(
    context: typer.Context,
    words: Annotated[
        list[str], typer.Argument(help='Words, "exact phrases", -without, a or b, a SKU, a GTIN.')
    ],
    min_price: options.MinPrice = None,
    max_price: options.MaxPrice = None,
    currency: options.Currency = None,
    availability: options.Availability = None,
    min_rating: options.MinRating = None,
    brand: options.Brand = None,
    category: options.Category = None,
    domain: options.Domain = None,
    changed_since: options.ChangedSince = None,
    problems: options.Problems = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: AsJson = False,
) -> None:
    """Search names, brands, categories and descriptions. Words with a - go behind a --."""
    from forager.cli import product_views as views
    from forager.index.engine import open_engine
    from forager.products.search import search_products

    wanted = filters_of(
        min_price=min_price,
        max_price=max_price,
        currency=currency,
        availability=availability,
        min_rating=min_rating,
        brand=brand,
        category=category,
        domain=domain,
        changed_since=changed_since,
        problems=problems,
        sku=None,
        gtin=None,
    )

    async def found(database: Database, settings: Settings) -> SearchPage:
        async with open_engine(settings) as engine:
            return await search_products(
                database, " ".join(words), wanted, cursor=cursor, limit=limit, engine=engine
            )

    page = with_database(context, found)
    if as_json:
        return show_json(views.plain(page))
    if page.items:
        views.show_products(page.items)
    elif page.note is None:
        note("Nothing matches.")
    if page.note is not None:
        note(page.note)
    if page.capped:
        note("So many products match that only a part was ranked. More words find better ones.")
    return _say_more(page.next_cursor)


@app.command()
def export(
    context: typer.Context,
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="What kind of file.")
    ] = Format.JSONL,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
    ] = STDOUT,
    prices: Annotated[
        bool, typer.Option("--history", help="One row for each change of a price instead.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="With --history: changes since.", show_default=False),
    ] = None,
    min_price: options.MinPrice = None,
    max_price: options.MaxPrice = None,
    currency: options.Currency = None,
    availability: options.Availability = None,
    min_rating: options.MinRating = None,
    brand: options.Brand = None,
    category: options.Category = None,
    domain: options.Domain = None,
    changed_since: options.ChangedSince = None,
    problems: options.Problems = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write products to a file: CSV, JSON lines or Parquet. It appears when it is complete."""
    from forager.products.export import Export, ExportFormat

    if since is not None and not prices:
        raise InvalidInput("--since is for --history", hint="Or give --changed-since.")
    if output == STDOUT and format_ is Format.PARQUET and sys.stdout.isatty():
        raise InvalidInput("a parquet file is nothing for a terminal", hint="Give --output FILE.")
    filters = filters_of(
        min_price=min_price,
        max_price=max_price,
        currency=currency,
        availability=availability,
        min_rating=min_rating,
        brand=brand,
        category=category,
        domain=domain,
        changed_since=changed_since,
        problems=problems,
        sku=None,
        gtin=None,
    )
    wanted = Export(ExportFormat(format_), filters, prices, moment(since))

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
    with _output(output, force=force) as file, _progress(total) as progress:
        return await export_products(database, wanted, file, progress)


@app.command()
def image(
    context: typer.Context,
    product: Which,
    position: Annotated[int, typer.Argument(min=0, max=2**31 - 1, help="As `show` lists it.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
    ] = STDOUT,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write the stored file of one of a product's images."""
    from forager.products.shown_image import image_of

    if output == STDOUT and sys.stdout.isatty():
        raise InvalidInput("an image is nothing for a terminal", hint="Give --output FILE.")
    data = with_database(context, lambda db, settings: image_of(db, settings, product, position))
    with _output(output, force=force) as file:
        file.write(data)


@app.command()
def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Show numbers about all products."""
    from forager.cli import product_views as views
    from forager.products.service import product_stats

    found = with_database(context, lambda db, _: product_stats(db))
    return show_json(views.plain(found)) if as_json else views.show_stats(found)


def _output(output: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    from forager.archive.wholefile import whole_file

    if output == STDOUT:
        return nullcontext(sys.stdout.buffer)
    return whole_file(Path(output), overwrite=force)


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on standard error, if a person is looking."""
    stderr = console(sys.stderr)
    if not stderr.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress as Bars

    with Bars(console=stderr, transient=True) as bars:
        bar = bars.add_task("exporting", total=total)
        yield lambda done: bars.advance(bar, done)


def _say_more(cursor: str | None) -> None:
    if cursor is not None:
        note(f"There are more: --cursor {cursor}")
