"""`forager analytics`: copy crawled data to Parquet files, and query them."""

from __future__ import annotations

from typing import Any

from forager.analytics.operations import AnalyticsAnswer, analytics
from forager.analytics.sync import SyncResult
from forager.analytics.sync import sync as sync_lake
from forager.cli.operations import commands_of
from forager.cli.output import counted, note, show_table
from forager.cli.running import CommandServices, answers


def _show(found: AnalyticsAnswer) -> None:
    result: Any = found  # a type checker does not see the fields that a view has of its row
    if result.rows:
        columns: dict[str, dict[str, Any]] = {}
        for name, values in zip(result.columns, zip(*result.rows, strict=True), strict=True):
            numeric = all(isinstance(value, int | float | None) for value in values)
            columns[name.replace("_", " ").upper()] = {"justify": "right"} if numeric else {}
        show_table(columns, result.rows)
    else:
        note("There are no rows in this period.")
    if found.is_cut:
        note("There are more rows: give a larger --limit.")
    if found.complete_until is None:
        note("No data was copied yet: run `forager analytics sync`.")
    else:
        note(f"As of {found.complete_until:%Y-%m-%d %H:%M} UTC, the last `forager analytics sync`.")


def _show_synced(done: SyncResult) -> None:
    for name, rows in done.rows.items():
        note(f"{name}: {counted(rows, 'new row')}")
    if done.loaded is not None:
        note(f"{counted(done.loaded, 'row')} loaded into ClickHouse")
    note(f"{counted(done.files, 'file')} in {done.folder}")


app = commands_of(analytics, {"run": _show})


@app.command()
@answers(_show_synced)
async def sync(services: CommandServices) -> object:
    """Copy new data to the lake of Parquet files and, if configured, to ClickHouse.

    The next run resumes an interrupted one.
    """
    return await sync_lake(services.database, services.settings)
