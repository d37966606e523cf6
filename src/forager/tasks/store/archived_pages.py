"""SQL of archived product pages: where the bytes of each task's pages are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import LiteralString

from forager.archive.segment import ArchiveRef
from forager.db.cursor import batches
from forager.db.database import Connection, Database
from forager.db.rows import Made, Rows

BATCH = 200
_NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page of a task in the archive."""

    id: int
    task_id: int
    domain_id: int
    url: str
    url_hash: bytes
    segment: str
    segment_offset: int
    segment_length: int

    @property
    def ref(self) -> ArchiveRef:
        """The place of the response in the archive."""
        return ArchiveRef(self.segment, self.segment_offset, self.segment_length)


_LATEST: LiteralString = """
    SELECT t.id, t.id AS task_id, t.domain_id, t.url, t.url_hash,
           t.segment, t.segment_offset, t.segment_length
      FROM crawl_tasks t
     WHERE t.id < %(before)s AND t.segment IS NOT NULL
       AND (%(domain_ids)s::bigint[] IS NULL OR t.domain_id = ANY(%(domain_ids)s))
     ORDER BY t.id DESC
     LIMIT %(limit)s
"""
# a page that was parsed several times has several rows, of which the newest is selected
_HISTORY: LiteralString = """
    SELECT e.id, e.task_id, e.domain_id, e.url, t.url_hash,
           e.segment, e.segment_offset, e.segment_length
      FROM extractions e
      JOIN crawl_tasks t ON t.id = e.task_id
     WHERE e.id < %(before)s AND e.role = 'active' AND e.segment IS NOT NULL
       AND (%(domain_ids)s::bigint[] IS NULL OR e.domain_id = ANY(%(domain_ids)s))
       AND NOT EXISTS (
           SELECT FROM extractions n
            WHERE n.task_id = e.task_id AND n.id > e.id AND n.role = 'active'
              AND n.segment = e.segment AND n.segment_offset = e.segment_offset
           )
     ORDER BY e.id DESC
     LIMIT %(limit)s
"""


async def archived_pages(
    database: Database, *, domain_ids: list[int] | None, history: bool
) -> AsyncIterator[ArchivedPage]:
    """The newest page of every task, or all stored pages; reads a batch of rows at a time."""

    async def select(before: int) -> list[ArchivedPage]:
        return await database.run(_select, before, domain_ids, history=history)

    async for rows in batches(select, _NEWEST, lambda row: row.id, BATCH):
        for row in rows:
            yield row


async def _select(
    connection: Connection, before: int, domain_ids: list[int] | None, *, history: bool
) -> list[ArchivedPage]:
    return await Rows(connection, ArchivedPage).all(
        _HISTORY if history else _LATEST,
        {"before": before, "domain_ids": domain_ids, "limit": BATCH},
    )


async def select_page(connection: Connection, url_hash: bytes) -> ArchiveRef | None:
    """The location of the newest page of the task for a URL."""
    return await Made(connection, ArchiveRef).first(
        """
        SELECT segment, segment_offset, segment_length
          FROM crawl_tasks
         WHERE url_hash = %s AND segment IS NOT NULL
        """,
        (url_hash,),
    )


async def select_visit(connection: Connection, task_id: int, *, number: int) -> ArchiveRef | None:
    """The location of the response of the n-th newest visit that has one."""
    return await Made(connection, ArchiveRef).first(
        """
        SELECT segment, segment_offset, segment_length
          FROM task_attempts
         WHERE task_id = %s AND stage = 'download' AND segment IS NOT NULL
         ORDER BY id DESC
        OFFSET %s LIMIT 1
        """,
        (task_id, number - 1),
    )
