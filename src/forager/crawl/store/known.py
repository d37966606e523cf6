"""SQL that refills the memory of a resumed crawl, piece by piece."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from forager.crawl.store.visited import IS_PAGE
from forager.db.database import Connection

CHUNK = 20_000

# key and URL; of settled ones also the reason, and of pages their content
Known = tuple[bytes, str, str | None, bytes | None]


async def select_known_visited(
    connection: Connection, job_id: UUID, *, after: bytes
) -> list[Known]:
    """Some settled URLs behind a key, in its order."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(
            f"""
            SELECT url_hash, url, reason, CASE WHEN {IS_PAGE} THEN content_hash END
              FROM crawl_visited
             WHERE job_id = %s AND url_hash > %s
             ORDER BY url_hash
             LIMIT %s
            """,
            (job_id, after, CHUNK),
        )
        return cast("list[Known]", await cursor.fetchall())


async def select_known_frontier(
    connection: Connection, job_id: UUID, *, after: tuple[int, int]
) -> tuple[list[Known], tuple[int, int]]:
    """Some pending URLs behind a place, and the place of the last one."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(
            """
            SELECT depth, seq, url_hash, url
              FROM crawl_frontier
             WHERE job_id = %s AND (depth, seq) > (%s, %s)
             ORDER BY depth, seq
             LIMIT %s
            """,
            (job_id, *after, CHUNK),
        )
        rows = await cursor.fetchall()
    place = (rows[-1][0], rows[-1][1]) if rows else after
    return [(key, url, None, None) for _, _, key, url in rows], place
