"""Load the lake into a ClickHouse server, file by file.

A file is recorded on the server after its rows are there. Killed between the two, it is loaded
again, and its rows replace themselves. A server that was emptied has no records either, and
gets everything again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from forager.analytics.clickhouse import ClickHouse, connected
from forager.analytics.dataset import DATASETS, Dataset, column_types
from forager.analytics.lake import BEGINNING, LakeFile, Manifest
from forager.errors import NotAllowed

_BY_NAME = {dataset.name: dataset for dataset in DATASETS}


async def load(
    url: SecretStr, folder: Path, manifest: Manifest, progress: Callable[[int], None]
) -> int:
    """Send missing files of the manifest to the server; return the number of rows."""
    async with connected(url) as server:
        await create_tables(server)
        await _refuse_others(server, manifest)
        # before the first row: it records the database of these tables
        await _record_state(server, manifest, BEGINNING)
        loaded = await _loaded(server, manifest)
        rows = 0
        for file in manifest.files:
            if file.path not in loaded:
                rows += await _load(server, folder, manifest, file, loaded)
                progress(file.rows)
        await _record_state(server, manifest, manifest.complete_until or BEGINNING)
    return rows


async def complete_until(server: ClickHouse) -> datetime | None:
    """The time before which no row is missing on the server; None if nothing was loaded."""
    found = await server.query(
        f"SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = '{STATE}'"
    )
    if not int(found["data"][0][0]):
        return None
    # the latest: the server replaces older rows later
    found = await server.query(f"SELECT toUnixTimestamp64Micro(max(complete_until)) FROM {STATE}")
    until = BEGINNING + timedelta(microseconds=int(found["data"][0][0]))
    return until if until > BEGINNING else None


async def _refuse_others(server: ClickHouse, manifest: Manifest) -> None:
    """Rows of two databases have the same numbers, and would replace each other."""
    found = await server.query(
        f"SELECT count() FROM {STATE} WHERE database != {{database:String}}",
        {"database": manifest.database},
    )
    if int(found["data"][0][0]):
        raise NotAllowed(
            "the tables on the ClickHouse server were loaded from another database",
            hint="Name another database in FORAGER_CLICKHOUSE_URL.",
        )


async def _record_state(server: ClickHouse, manifest: Manifest, until: datetime) -> None:
    await server.run(
        f"INSERT INTO {STATE} SELECT {{database:String}},"
        " fromUnixTimestamp64Micro({until:Int64}, 'UTC')",
        {
            "database": manifest.database,
            "until": (until - BEGINNING) // timedelta(microseconds=1),
        },
    )


async def _loaded(server: ClickHouse, manifest: Manifest) -> set[str]:
    found = await server.query(
        f"SELECT DISTINCT path FROM {FILES} WHERE lake = {{lake:String}}", {"lake": manifest.lake}
    )
    return {str(row[0]) for row in found["data"]}


async def _load(
    server: ClickHouse, folder: Path, manifest: Manifest, file: LakeFile, loaded: set[str]
) -> int:
    # a file that was merged from loaded ones has no new rows
    is_new = not file.parts or not loaded.issuperset(file.parts)
    if is_new:
        dataset = _BY_NAME[file.dataset]
        await server.insert(table_of(dataset), list(dataset.columns), folder / file.path)
    await server.run(
        f"INSERT INTO {FILES} (lake, path, rows)"
        " SELECT {lake:String}, {path:String}, {rows:Int64}",
        {"lake": manifest.lake, "path": file.path, "rows": file.rows},
    )
    return file.rows if is_new else 0


PREFIX = "forager_"
FILES = f"{PREFIX}lake_files"
STATE = f"{PREFIX}lake"

# Rows with the same key replace each other, so that there are no duplicates, however often a file
# is loaded. Queries say FINAL, because the server replaces rows later.
_FILES = f"""
CREATE TABLE IF NOT EXISTS {FILES}
(lake String, path String, rows Int64, loaded_at DateTime64(6, 'UTC') DEFAULT now64(6))
ENGINE = ReplacingMergeTree(loaded_at) ORDER BY (lake, path)
"""
_STATE = f"""
CREATE TABLE IF NOT EXISTS {STATE}
(database String, complete_until DateTime64(6, 'UTC'))
ENGINE = ReplacingMergeTree(complete_until) ORDER BY database
"""


async def create_tables(server: ClickHouse) -> None:
    """Create missing tables, and add columns that are newer than a table."""
    for statement in (_FILES, _STATE):
        await server.run(statement)
    for dataset in DATASETS:
        columns = [f"{name} {kind}" for name, kind in column_types(dataset).items()]
        await server.run(_table(dataset, columns))
        added = ", ".join(f"ADD COLUMN IF NOT EXISTS {column}" for column in columns)
        await server.run(f"ALTER TABLE {table_of(dataset)} {added}")


def table_of(dataset: Dataset) -> str:
    return PREFIX + dataset.name


def tables() -> dict[str, str]:
    """The FROM clause of each dataset."""
    return {each.name: f"(SELECT * FROM {table_of(each)} FINAL)" for each in DATASETS}


def _table(dataset: Dataset, columns: list[str]) -> str:
    # a version of another month replaces those before only if it is in the same partition
    parts = "" if dataset.has_versions else "PARTITION BY toYYYYMM(at)"
    return f"""
        CREATE TABLE IF NOT EXISTS {table_of(dataset)} ({", ".join(columns)})
        ENGINE = ReplacingMergeTree(at) {parts} ORDER BY ({", ".join(dataset.key)})
    """
