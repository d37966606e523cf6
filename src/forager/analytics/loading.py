"""Load the lake into a ClickHouse server: whole months, each replaced in one step."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import SecretStr

from forager.analytics.clickhouse import ClickHouse, connected
from forager.analytics.dataset import DATASETS, Dataset, column_types, month_file, newest_rows
from forager.analytics.lake import LakeState
from forager.errors import NotAllowed
from forager.row_files import load_pyarrow

PREFIX = "forager_"
# its comment holds the state of all tables
STATE_TABLE = PREFIX + DATASETS[0].name
# rows of one request
BATCH = 100_000


@dataclass(frozen=True, slots=True)
class ChangedMonth:
    """A month of a dataset, and whether the last sync changed it."""

    dataset: Dataset
    month: str
    rows: int
    changed: bool


async def load(
    url: SecretStr, folder: Path, state: LakeState, months: Sequence[ChangedMonth]
) -> int:
    """Replace changed months, and those with another number of rows; return rows sent."""
    load_pyarrow("pyarrow")
    rows = 0
    async with connected(url) as server:
        await _create_tables(server, state)
        for dataset in DATASETS:
            stored = await _stored_rows(server, dataset)
            for month in (each for each in months if each.dataset is dataset):
                if month.changed or stored.get(month.month) != month.rows:
                    await _replace(server, folder, month)
                    rows += month.rows
        await _write_state(server, state)
    return rows


async def complete_until(server: ClickHouse) -> datetime | None:
    """The time of the last sync that was loaded; None if nothing was loaded."""
    state = await _read_state(server)
    return datetime.fromisoformat(state["complete_until"]) if state else None


async def _read_state(server: ClickHouse) -> dict[str, Any] | None:
    found = await server.query(
        "SELECT comment FROM system.tables"
        f" WHERE database = currentDatabase() AND name = '{STATE_TABLE}' AND comment != ''"
    )
    return orjson.loads(found["data"][0][0]) if found["data"] else None


async def _write_state(server: ClickHouse, state: LakeState) -> None:
    comment = orjson.dumps(asdict(state)).decode()
    await server.run(f"ALTER TABLE {STATE_TABLE} MODIFY COMMENT '{comment}'")


async def _create_tables(server: ClickHouse, state: LakeState) -> None:
    """Create missing tables, and add columns that are newer than a table."""
    before = await _read_state(server)
    if before is not None and before["database"] != state.database:
        raise NotAllowed(
            "the tables on the ClickHouse server were loaded from another database",
            hint="Name another database in FORAGER_CLICKHOUSE_URL.",
        )
    await _drop_earlier_tables(server)
    for dataset in DATASETS:
        columns = [f"{name} {kind}" for name, kind in column_types(dataset).items()]
        await server.run(
            f"CREATE TABLE IF NOT EXISTS {table_of(dataset)} ({', '.join(columns)})"
            " ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY (at, id)"
        )
        added = ", ".join(f"ADD COLUMN IF NOT EXISTS {column}" for column in columns)
        await server.run(f"ALTER TABLE {table_of(dataset)} {added}")


async def _drop_earlier_tables(server: ClickHouse) -> None:
    """Tables of an earlier version replaced rows one by one, and kept a list of files."""
    found = await server.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase()"
        f" AND startsWith(name, '{PREFIX}') AND engine = 'ReplacingMergeTree'"
    )
    for (name,) in found["data"]:
        await server.run(f"DROP TABLE {name}")


async def _stored_rows(server: ClickHouse, dataset: Dataset) -> dict[str, int]:
    found = await server.query(
        "SELECT formatDateTime(at, '%Y-%m') AS month, count() AS rows"
        f" FROM {table_of(dataset)} GROUP BY month"
    )
    return {str(month): int(rows) for month, rows in found["data"]}


async def _replace(server: ClickHouse, folder: Path, month: ChangedMonth) -> None:
    """Fill a table of the same structure, and swap the month in one step."""
    table = table_of(month.dataset)
    staged = f"{table}_staged"
    await server.run(f"DROP TABLE IF EXISTS {staged}")
    await server.run(f"CREATE TABLE {staged} AS {table}")
    parts = _parts(month_file(folder, month.dataset.name, month.month))
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        await server.insert(staged, list(month.dataset.columns), part)
    partition = month.month.replace("-", "")
    await server.run(f"ALTER TABLE {table} REPLACE PARTITION ID '{partition}' FROM {staged}")
    await server.run(f"DROP TABLE {staged}")


def _parts(path: Path) -> Iterator[bytes]:
    """A Parquet file as several small ones: a file may be larger than the memory."""
    arrow, parquet = load_pyarrow("pyarrow"), load_pyarrow("pyarrow.parquet")
    for batch in parquet.ParquetFile(path).iter_batches(BATCH):
        file = io.BytesIO()
        parquet.write_table(arrow.Table.from_batches([batch]), file, compression="zstd")
        yield file.getvalue()


def table_of(dataset: Dataset) -> str:
    return PREFIX + dataset.name


def tables() -> dict[str, str]:
    """The FROM clause of each dataset."""
    return {each.name: newest_rows(each, table_of(each)) for each in DATASETS}
