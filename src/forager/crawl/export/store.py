"""The SQL of exports: pages by key, so that no snapshot is held while bytes are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.db.database import Connection
from forager.db.rows import Values

PAGE_ROWS = 1000


@dataclass(frozen=True, slots=True)
class ArchivedUrl:
    """Where the response of a URL is."""

    url_hash: bytes
    ref: ArchiveRef


async def count_settled(
    connection: Connection, job_id: UUID, outcomes: Sequence[str], *, archived: bool
) -> int:
    value = await Values(connection).first(
        """
        SELECT count(*)
          FROM crawl_visited
         WHERE job_id = %s AND outcome = ANY(%s) AND (segment IS NOT NULL OR NOT %s)
        """,
        (job_id, list(outcomes), archived),
    )
    return value or 0


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
