"""`forager products`: product data, price history, search and exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.model_flags import ModelFlags, moment
from forager.cli.operations import commands_of
from forager.cli.options import Cursor, Force, Limit, Output, Yes, option, switch
from forager.cli.output import (
    STDOUT,
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
from forager.cli.reports import reports
from forager.cli.running import CommandServices, answers, confirm, runs
from forager.cli.steps import Steps
from forager.errors import InvalidInput
from forager.index.engine import open_engine
from forager.operations.models import Paging
from forager.products.audit import audit_catalog, last_audit
from forager.products.export import (
    SINCE,
    ExportContent,
    ProductExport,
    ProductsExportFormat,
    export_products,
    export_size,
)
from forager.products.filters import Filters
from forager.products.lookup import image_of
from forager.products.models import ProductList, ProductQuery
from forager.products.operations import FILTER_FLAGS, list_products, offers_of
from forager.products.unseen import delete_unseen
from forager.tasks.operations.replacements import products

Which = Annotated[str, typer.Argument(metavar="PRODUCT", help="Product ID or URL.")]


def _filters(to: Callable[[ProductQuery], Any]) -> ModelFlags:
    return ModelFlags(ProductQuery, to=to, without=("sku", "gtin"), **FILTER_FLAGS)


NONE = "There are no such products. `forager products track URL` adds one."


def _show_found(page: ProductList, none: str = NONE) -> None:
    if page.items:
        show_rows(views.PRODUCT_COLUMNS, page.items)
    elif page.note is None:
        note(none)
    if page.note is not None:
        note(page.note)
    if page.capped:
        note("Too many products match, so only some were ranked. Add words to narrow the search.")
    note_more(page.next_cursor)


app = commands_of(
    products,
    {
        "list": _show_found,
        "show": views.show_details,
        "history": views.show_history,
        "changes": views.MOVE_COLUMNS,
        "stats": views.show_stats,
    },
)


@app.command()
@reports
async def audit(
    services: CommandServices,
    last: bool = switch("Show the findings of the last audit instead.", "--last"),
) -> object:
    """Check the catalog for contradictory or stale data; workers do so every day."""
    return await (
        last_audit(services.database)
        if last
        else audit_catalog(services.database, services.settings)
    )


app.command()(track)


@app.command()
@answers(partial(_show_found, none="Nothing matches."))
async def search(
    services: CommandServices,
    words: Annotated[
        list[str], typer.Argument(help='Words, "exact phrases", -without, a or b, a SKU, a GTIN.')
    ],
    wanted: Annotated[ProductQuery, _filters(lambda query: query)],
    limit: Limit = 20,
    cursor: Cursor = None,
) -> object:
    """Search names, brands, categories and descriptions. Words that begin with - go after --."""
    paging = Paging(cursor=cursor, limit=limit)
    async with open_engine(services.settings) as engine:
        context = replace(services.context, engine=engine)
        return await list_products(context, paging, wanted, q=" ".join(words))


@app.command()
@runs
async def export(
    services: CommandServices,
    format_: ProductsExportFormat = option(
        "Output format.", "--format", "-f", default=ProductsExportFormat.JSONL
    ),
    output: Output = STDOUT,
    content: ExportContent = option(
        "Products, or one row for each price (`history`), product whose price changed (`changes`),"
        " offer of another shop, item, or category and day (`index`).",
        default=ExportContent.PRODUCTS,
    ),
    prices: bool = switch("The same as --content history.", "--history"),
    offers: bool = switch("The same as --content offers.", "--offers"),
    columns: str | None = option(
        "Columns to write.", metavar="NAME,…|all", show_default="those of `products list`"
    ),
    since: str | None = option(
        "Since this time: all of the `history` by default, `changes` of 7 days, `index` of 90.",
        metavar="WHEN",
    ),
    *,
    wanted: Annotated[Filters, _filters(ProductQuery.filters)],
    delete: bool = switch(
        "With --not-seen-for: delete the products once the file is complete.", "--delete"
    ),
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Write products to a file, which appears once it is complete: CSV, JSON lines, Parquet."""
    asked = {ExportContent.HISTORY: prices, ExportContent.OFFERS: offers}
    contents = {content, *(each for each, is_asked in asked.items() if is_asked)}
    contents -= {ExportContent.PRODUCTS}
    if len(contents) > 1:
        raise InvalidInput("a file has one kind of content", hint="Give one of these options.")
    content = next(iter(contents), ExportContent.PRODUCTS)
    if since is not None and content not in SINCE:
        raise InvalidInput(f"--since is for {', '.join(SINCE)}", hint="Or give --changed-since.")
    if format_ is ProductsExportFormat.PARQUET:
        refuse_terminal(output, "a parquet file")
    if delete:
        _check_deletion(wanted, output, others=bool(contents) or columns is not None)
        confirm("Delete the products from the database once they are exported?", yes=yes)
        columns = "all"
    named = tuple(filter(None, (name.strip() for name in (columns or "").split(","))))
    order = ProductExport(format_, wanted, content, moment(since), named)
    total = await export_size(services.database, order)
    exported: list[int] = []
    with open_output(output, force=force) as file, Steps("exporting", total) as steps:

        def progress(ids: Sequence[int]) -> None:
            steps.advance(len(ids))
            if delete:
                exported.extend(ids)

        written = await export_products(services.database, order, file, progress)
    note_written(counted(written, "row"), output)
    if delete:
        assert wanted.not_seen_since is not None
        deleted = await delete_unseen(services.database, exported, wanted.not_seen_since)
        note(f"{counted(deleted, 'product')} deleted.")


def _check_deletion(wanted: Filters, output: str, *, others: bool) -> None:
    if wanted.not_seen_since is None:
        raise InvalidInput("--delete needs --not-seen-for", hint="For example: 180d.")
    if others:
        raise InvalidInput(
            "--delete writes all columns of products", hint="Leave out other contents and columns."
        )
    if not Path(output).is_file() and (output == STDOUT or Path(output).exists()):
        raise InvalidInput("--delete needs a file to write to", hint="Give --output FILE.")


@app.command()
@answers(views.show_offers)
async def offers(
    services: CommandServices,
    which: Annotated[
        str, typer.Argument(metavar="GTIN|PRODUCT", help="GTIN, or product ID or URL.")
    ],
) -> object:
    """Compare the offers of the same article in all shops, cheapest first."""
    return await offers_of(services.context, which)


@app.command()
@runs
async def image(
    services: CommandServices,
    product: Which,
    position: Annotated[
        int, typer.Argument(min=0, max=2**31 - 1, help="Position, as listed by `show`.")
    ],
    output: Output = STDOUT,
    force: Force = False,
) -> None:
    """Save a stored image of a product."""
    refuse_terminal(output, "an image")
    data = await image_of(services.database, services.settings, product, position)
    with open_output(output, force=force) as file:
        file.write(data)
