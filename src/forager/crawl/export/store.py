"""The SQL of exports: pages by key, so that no snapshot is held while bytes are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID

from psycopg.rows import class_row, scalar_row

from forager.archive.segment import ArchiveRef
from forager.crawl.settlement import SettledUrl
from forager.db.database import Connection

PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class ArchivedUrl:
    """Where the response of a URL is."""

    url_hash: bytes
    ref: ArchiveRef


async def count_settled(
    connection: Connection, job_id: UUID, outcomes: Sequence[str], *, archived: bool
) -> int:
    cursor = connection.cursor(row_factory=scalar_row)
    await cursor.execute(
        """
        SELECT count(*)
          FROM crawl_visited
         WHERE job_id = %s AND outcome = ANY(%s) AND (segment IS NOT NULL OR NOT %s)
        """,
        (job_id, list(outcomes), archived),
    )
    return await cursor.fetchone() or 0


async def select_settled(
    connection: Connection,
    job_id: UUID,
    outcomes: Sequence[str],
    *,
    after: bytes,
    limit: int = PAGE_ROWS,
) -> list[SettledUrl]:
    # as part of the text, so that those that failed are found by their own index
    only_failed: LiteralString = "AND v.outcome = 'failed'" if outcomes == ["failed"] else ""
    cursor = connection.cursor(row_factory=class_row(SettledUrl))
    await cursor.execute(
        f"""
        SELECT v.url_hash, v.url, v.outcome, v.reason, v.detail, v.duplicate_of, v.http_status,
               v.depth, p.url AS parent_url, v.via, v.content_type, v.title, v.size, v.settled_at,
               v.content_hash, v.segment, v.segment_offset, v.segment_length
          FROM crawl_visited v
          LEFT JOIN crawl_visited p ON p.job_id = v.job_id AND p.url_hash = v.parent
         WHERE v.job_id = %s AND v.url_hash > %s AND v.outcome = ANY(%s) {only_failed}
         ORDER BY v.url_hash
         LIMIT %s
        """,
        (job_id, after, list(outcomes), limit),
    )
    return await cursor.fetchall()


async def select_refs(
    connection: Connection,
    job_id: UUID,
    outcomes: Sequence[str],
    *,
    after: bytes,
    limit: int,
) -> list[ArchivedUrl]:
    cursor = await connection.execute(
        """
        SELECT url_hash, segment, segment_offset, segment_length
          FROM crawl_visited
         WHERE job_id = %s AND url_hash > %s AND outcome = ANY(%s) AND segment IS NOT NULL
         ORDER BY url_hash
         LIMIT %s
        """,
        (job_id, after, list(outcomes), limit),
    )
    return [ArchivedUrl(key, ArchiveRef(*ref)) for key, *ref in await cursor.fetchall()]
