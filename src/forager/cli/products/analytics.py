"""`forager analytics`: copy what was crawled to files, and ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.cli.options import AsJson, flags_of, option
from forager.cli.output import counted, note, show_json, show_rows, show_table
from forager.cli.running import CommandContext, answers
from forager.cli.running import run as run_loop

if TYPE_CHECKING:
    from forager.analytics.answers import Answer
    from forager.analytics.sync import Synced

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
async def sync(here: CommandContext) -> object:
    """Copy new data to the lake of Parquet files and, if configured, to ClickHouse.

    The next run resumes an interrupted one.
    """
    from forager.analytics.sync import sync as sync_lake

    return await sync_lake(here.database, here.settings)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the available queries."""
    from forager.analytics.answers import list_queries

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
    from forager.analytics.answers import answer

    settings = flags_of(context).load()
    found = run_loop(answer(settings, name, days=days, limit=limit))
    return show_json(found) if as_json else _show(found)


def _show(found: Answer) -> None:
    if found.rows:
        numbers: dict[str, Any] = {"justify": "right"}
        columns = {
            name.replace("_", " ").upper(): numbers if _is_number(found, place) else {}
            for place, name in enumerate(found.columns)
        }
        show_table(columns, found.rows)
    else:
        note("The lake has nothing of that time.")
    if found.is_cut:
        note("There are more rows: give a larger --limit.")
    if found.complete_until is None:
        note("Nothing was copied yet: `forager analytics sync` does it.")
    else:
        note(f"As of {found.complete_until:%Y-%m-%d %H:%M} UTC, the last `forager analytics sync`.")


def _is_number(found: Answer, place: int) -> bool:
    return all(isinstance(row[place], int | float | None) for row in found.rows)
