"""`forager products archive` and `restore`: products that nobody has seen for long."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forager.cli.asking import confirm
from forager.cli.options import AsJson, Yes
from forager.cli.output import note, show_json
from forager.cli.running import with_database
from forager.cli.words import counted


def archive(
    context: typer.Context,
    days: Annotated[float, typer.Option(min=1, help="Not seen for so many days.")] = 180,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move products that were not seen for long to Parquet files, with their prices."""
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


def restore(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="As `archive` has named them.")],
    as_json: AsJson = False,
) -> None:
    """Put archived products back. Those that are there again stay as they are."""
    from forager.products.archiving import restore_products

    done = [
        with_database(context, lambda db, _, path=path: restore_products(db, path))  # type: ignore[misc]
        for path in files
    ]
    if as_json:
        return show_json(done)
    products = counted(sum(each.products for each in done), "product")
    skipped = sum(each.skipped for each in done)
    note(f"{products} restored" + (f", {skipped:,} left out." if skipped else "."))
    return None
