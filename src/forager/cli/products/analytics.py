"""`forager analytics`: copy crawled data to Parquet files, and query them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from forager.analytics.answers import QueryResult, answer, list_queries
from forager.analytics.sync import Synced
from forager.analytics.sync import sync as sync_lake
from forager.cli.options import AsJson, flags_of, option
from forager.cli.output import counted, note, show_json, show_rows, show_table
from forager.cli.running import CommandServices, answers

app = typer.Typer(
    help="Products, prices, pages and parsers as Parquet files, and queries on them.",
    no_args_is_help=True,
)


def _show_synced(done: Synced) -> None:
    for name, rows in done.rows.items():
        note(f"{name}: {counted(rows, 'new row')}")
    if done.loaded is not None:
        note(f"{counted(done.loaded, 'row')} loaded into ClickHouse")
    note(f"{counted(done.files, 'file')} in {done.folder}")


@app.command()
@answers(_show_synced)
async def sync(services: CommandServices) -> object:
    """Copy new data to the lake of Parquet files and, if configured, to ClickHouse.

    The next run resumes an interrupted one.
    """
    return await sync_lake(services.database, services.settings)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the available queries."""
    found = list_queries()
    if as_json:
        return show_json([{"name": each.name, "about": each.about} for each in found])
    return show_rows({"NAME": "name", "WHAT": "about"}, found)


@app.command()
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, as shown by `list`.")],
    days: int = option("Number of days to cover.", default=30, min=1, max=3_660),
    limit: int = option("Rows to show.", default=100, min=1, max=1_000),
    as_json: AsJson = False,
) -> None:
    """Run a query. Results are as fresh as the last sync."""
    found = asyncio.run(answer(flags_of(context).load(), name, days=days, limit=limit))
    return show_json(found) if as_json else _show(found)


def _show(found: QueryResult) -> None:
    if found.rows:
        columns: dict[str, dict[str, Any]] = {}
        for name, values in zip(found.columns, zip(*found.rows, strict=True), strict=True):
            numeric = all(isinstance(value, int | float | None) for value in values)
            columns[name.replace("_", " ").upper()] = {"justify": "right"} if numeric else {}
        show_table(columns, found.rows)
    else:
        note("There are no rows in this period.")
    if found.is_cut:
        note("There are more rows: give a larger --limit.")
    if found.complete_until is None:
        note("No data was copied yet: run `forager analytics sync`.")
    else:
        note(f"As of {found.complete_until:%Y-%m-%d %H:%M} UTC, the last `forager analytics sync`.")
