"""Ready-made questions and their answers: what the command line, the API and the pages call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forager.analytics.engine import ask_chdb
from forager.analytics.lake import lake_folder
from forager.analytics.manifest import read_manifest
from forager.analytics.queries import QUERIES, Query, query_named
from forager.analytics.sources import sources_of
from forager.errors import InvalidInput
from forager.settings import Settings

DEFAULT_DAYS = 30
MOST_DAYS = 36_500
MOST_ROWS = 1_000


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
    manifest = read_manifest(lake_folder(settings))
    if manifest is None:
        return Answer(name, days, (), (), is_cut=False, complete_until=None)
    # one row more than wanted tells whether there are more
    sql = query.sql.format(days=days, rows=limit + 1, **sources_of(manifest))
    found = await ask_chdb(sql, lake_folder(settings))
    return Answer(
        name,
        days,
        tuple(str(column["name"]) for column in found["meta"]),
        tuple(tuple(map(_number, found["meta"], row)) for row in found["data"][:limit]),
        len(found["data"]) > limit,
        manifest.complete_until,
    )


def _number(column: dict[str, str], value: Any) -> Any:
    """ClickHouse writes numbers of 64 bits as texts, for the sake of JavaScript."""
    return int(value) if isinstance(value, str) and "Int" in column["type"] else value


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} must be between 1 and {most:,}")
