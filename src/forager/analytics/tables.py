"""Tables on a ClickHouse server: one for each dataset, and two that say what they hold."""

from __future__ import annotations

from forager.analytics.clickhouse import ClickHouse
from forager.analytics.dataset import DATASETS, Dataset, column_types

PREFIX = "forager_"
FILES = f"{PREFIX}lake_files"
STATE = f"{PREFIX}lake"

# Rows with the same key replace each other, so that nothing is there twice, however often a file
# is loaded. Whoever asks says FINAL, because the server replaces them in its own time.
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
    """Tables that are missing, and columns that are newer than a table."""
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
    """Of each dataset, what stands behind FROM."""
    return {each.name: f"(SELECT * FROM {table_of(each)} FINAL)" for each in DATASETS}


def _table(dataset: Dataset, columns: list[str]) -> str:
    # a version of another month replaces those before only if it is in the same partition
    parts = "" if dataset.has_versions else "PARTITION BY toYYYYMM(at)"
    return f"""
        CREATE TABLE IF NOT EXISTS {table_of(dataset)} ({", ".join(columns)})
        ENGINE = ReplacingMergeTree(at) {parts} ORDER BY ({", ".join(dataset.key)})
    """
