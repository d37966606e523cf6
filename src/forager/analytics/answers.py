"""Runs prepared queries with DuckDB or a ClickHouse server, for all adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from forager.analytics.clickhouse import connected, load_driver
from forager.analytics.dataset import DATASETS, Dataset, newest_rows
from forager.analytics.engine import query_files, require_engine
from forager.analytics.lake import lake_folder, read_state
from forager.analytics.loading import complete_until, tables
from forager.analytics.queries import QUERIES, PreparedQuery, query_named
from forager.errors import InvalidInput
from forager.settings import Settings

DEFAULT_DAYS = 30
# ten years: times in ClickHouse begin in 1970
MOST_DAYS = 3_660
MOST_ROWS = 1_000

# the time until which it is complete, columns and rows
Found = tuple[datetime | None, Sequence[str], Sequence[Sequence[Any]]]
NOTHING: Found = (None, (), ())


@dataclass(frozen=True, slots=True)
class QueryResult:
    """`is_cut`: there are more rows. Nothing before `complete_until` is missing.

    Without that time there was no sync yet, and there are no rows.
    """

    name: str
    days: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool
    complete_until: datetime | None


def check_engine(settings: Settings) -> None:
    """Raise an error if what runs the queries is not installed."""
    if settings.clickhouse_url is None:
        require_engine()
    else:
        load_driver()


def list_queries() -> Sequence[PreparedQuery]:
    """The prepared queries."""
    return tuple(QUERIES.values())


async def answer(
    settings: Settings, name: str, *, days: int = DEFAULT_DAYS, limit: int = 100
) -> QueryResult:
    """Run a prepared query over the last days."""
    query = query_named(name)
    _check("days", days, MOST_DAYS)
    _check("limit", limit, MOST_ROWS)
    check_engine(settings)
    # one more row shows whether there are more
    run = _query_files if settings.clickhouse_url is None else _query_server
    until, columns, rows = await run(settings, query, {"days": days, "rows": limit + 1})
    shown = tuple(tuple(row) for row in rows[:limit])
    return QueryResult(name, days, tuple(columns), shown, len(rows) > limit, until)


async def _query_files(settings: Settings, query: PreparedQuery, values: dict[str, int]) -> Found:
    folder = lake_folder(settings)
    state = read_state(folder)
    if state is None:
        return NOTHING
    columns, rows = await query_files(query.sql.format(**values, **sources_in(folder)), folder)
    return state.complete_until, columns, rows


async def _query_server(settings: Settings, query: PreparedQuery, values: dict[str, int]) -> Found:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        until = await complete_until(server)
        if until is None:
            return NOTHING
        found = await server.query(query.sql.format(**values, **tables()))
    columns = [str(column["name"]) for column in found["meta"]]
    return until, columns, [list(map(_number, found["meta"], row)) for row in found["data"]]


def sources_in(folder: Path) -> dict[str, str]:
    """The FROM clause of each dataset, over the files in the folder."""
    return {each.name: newest_rows(each, _rows(folder, each)) for each in DATASETS}


def _rows(folder: Path, dataset: Dataset) -> str:
    if any((folder / dataset.name).glob("*.parquet")):
        return f"read_parquet('{dataset.name}/*.parquet', union_by_name = true)"
    types = {
        name: "TIMESTAMPTZ" if kind.is_time else kind.csv_type
        for name, kind in dataset.columns.items()
    }
    nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in types.items())
    return f"(SELECT {nothing} WHERE false) AS {dataset.name}"


def _number(column: dict[str, str], value: Any) -> Any:
    """ClickHouse writes numbers of 64 bits as texts, for the sake of JavaScript."""
    return int(value) if isinstance(value, str) and "Int" in column["type"] else value


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} must be between 1 and {most:,}")
