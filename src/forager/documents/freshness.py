"""How fresh the published content is, and when sources are crawled again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from uuid import UUID

from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Database
from forager.documents.generation import Source
from forager.documents.store import freshness as store
from forager.documents.store.freshness import Freshness, GenerationResult
from forager.documents.store.generations import select_sources_by_id

__all__ = ["Freshness", "GenerationResult"]

# a refresh that is due for longer is late
LATE = timedelta(hours=1)
DAY = timedelta(days=1)
RESULTS = 20


async def content_freshness(database: Database, *, user_id: UUID | None = None) -> Freshness:
    """Of all sources (of an owner), with the changes of the last 24 hours."""
    since = datetime.now(UTC) - DAY
    return await database.run(store.select_freshness, user_id, since=since, late=LATE)


@dataclass(frozen=True, slots=True)
class ScheduledSource:
    """A source with a schedule, and the results of its last crawls, the oldest first."""

    source: Source
    results: list[GenerationResult]

    @property
    def id(self) -> str:
        return self.source.id

    @property
    def is_late(self) -> bool:
        due = self.source.next_refresh_at
        return due is not None and due < datetime.now(UTC) - LATE


async def scheduled_sources(
    database: Database, *, user_id: UUID | None = None, cursor: str | None = None, limit: int = 50
) -> Page[ScheduledSource]:
    """Sources with a schedule, the next refresh first."""
    check_limit(limit)
    after = None if cursor is None else _decode(cursor)
    async with database.transaction() as connection:
        due = await store.select_scheduled(connection, user_id, after=after, limit=limit + 1)
        ids = [source_id for source_id, _ in due]
        sources = {each.id: each for each in await select_sources_by_id(connection, ids)}
        rows = await store.select_results(connection, ids, limit=RESULTS)
    results = {name: list(some) for name, some in groupby(rows, key=lambda each: each.source_id)}
    found = page_of(due, limit, lambda last: encode_values(last[1].isoformat(), last[0]))
    return Page(
        [
            ScheduledSource(sources[source_id], results.get(source_id, []))
            for source_id, _ in found.items
            if source_id in sources
        ],
        found.next_cursor,
    )


def _decode(cursor: str) -> tuple[datetime, str]:
    match decode_values(cursor):
        case [str(at), str(source_id)]:
            try:
                return datetime.fromisoformat(at), source_id
            except ValueError:
                raise unknown_cursor() from None
    raise unknown_cursor()
