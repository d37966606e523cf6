"""Ready-made questions and their answers: what the command line, the API and the pages call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forager.analytics.clickhouse import connected
from forager.analytics.engine import ask_chdb
from forager.analytics.lake import lake_folder
from forager.analytics.loading import complete_until
from forager.analytics.manifest import read_manifest
from forager.analytics.queries import QUERIES, Query, query_named
from forager.analytics.sources import sources_of
from forager.analytics.tables import tables
from forager.errors import InvalidInput
from forager.settings import Settings

DEFAULT_DAYS = 30
# ClickHouse's time begins in 1970, and nobody looks at more than the costs of proxies can tell
MOST_DAYS = 3_660
MOST_ROWS = 1_000

# up to when it is complete, and the answer in ClickHouse's JSONCompact
Found = tuple[datetime | None, dict[str, Any]]
NOTHING: Found = (None, {"meta": (), "data": ()})


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_cut`: there are more rows. Nothing before `complete_until` is missing.

    Without that time there was no sync yet, and there are no rows.
    """

    name: str
    days: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool
    complete_until: datetime | None


def list_queries() -> Sequence[Query]:
    return tuple(QUERIES.values())


async def answer(
    settings: Settings, name: str, *, days: int = DEFAULT_DAYS, limit: int = 100
) -> Answer:
    """Ask one of the ready-made questions about the last days."""
    query = query_named(name)
    _check("days", days, MOST_DAYS)
    _check("limit", limit, MOST_ROWS)
    # one row more than wanted tells whether there are more
    ask = _ask_files if settings.clickhouse_url is None else _ask_server
    until, found = await ask(settings, query, {"days": days, "rows": limit + 1})
    return Answer(
        name,
        days,
        tuple(str(column["name"]) for column in found["meta"]),
        tuple(tuple(map(_number, found["meta"], row)) for row in found["data"][:limit]),
        len(found["data"]) > limit,
        until,
    )


async def _ask_files(settings: Settings, query: Query, values: dict[str, int]) -> Found:
    folder = lake_folder(settings)
    manifest = read_manifest(folder)
    if manifest is None:
        return NOTHING
    sql = query.sql.format(**values, **sources_of(manifest))
    return manifest.complete_until, await ask_chdb(sql, folder)


async def _ask_server(settings: Settings, query: Query, values: dict[str, int]) -> Found:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        until = await complete_until(server)
        if until is None:
            return NOTHING
        return until, await server.ask(query.sql.format(**values, **tables()))


def _number(column: dict[str, str], value: Any) -> Any:
    """ClickHouse writes numbers of 64 bits as texts, for the sake of JavaScript."""
    return int(value) if isinstance(value, str) and "Int" in column["type"] else value


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} must be between 1 and {most:,}")
