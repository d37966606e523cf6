"""SQL for the end of a crawl: targets of duplicates, and failures of the first URLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.crawl.frontier.loops import Pointer
from forager.crawl.settlement import ArchivedUrl
from forager.db.database import Connection
from forager.db.rows import Made, Tuples, Values
from forager.extract.keys import KEY_LENGTH


async def select_first_failures(connection: Connection, job_id: UUID) -> list[str]:
    """The reasons why the first URLs of a crawl are no pages, as text."""
    return await Values(connection).all(
        """
        SELECT url || ': ' || coalesce(detail, reason, outcome)
          FROM crawl_visited
         WHERE job_id = %s AND outcome <> 'duplicate'
         ORDER BY depth, settled_at, url
         LIMIT 3
        """,
        (job_id,),
    )


def key_ranges(count: int) -> list[tuple[bytes, bytes]]:
    """Split all keys into this many ranges (first, last) of about equal size."""
    count = min(count, 2**16)
    starts = [(2**16 * n // count).to_bytes(2, "big") for n in range(count)]
    return list(zip(starts, [*starts[1:], b"\xff" * (KEY_LENGTH + 1)], strict=True))


# Duplicates between two keys, and what they point to. Keys are computed as `url_key` does.
_DUPLICATES: LiteralString = """
          FROM crawl_visited d
         CROSS JOIN LATERAL (
                SELECT substring(sha256(convert_to(d.duplicate_of, 'UTF8')) FOR 16) AS target
               ) k
          LEFT JOIN crawl_visited t ON t.job_id = d.job_id AND t.url_hash = k.target
         WHERE d.job_id = %s
           AND d.url_hash >= %s AND d.url_hash < %s
           AND d.outcome = 'duplicate'
"""
_IS_NO_PAGE: LiteralString = """
    (t.outcome IN ('fetched', 'unchanged') OR t.carried_over) IS NOT TRUE
"""


async def select_pointers(
    connection: Connection, job_id: UUID, first: bytes, last: bytes
) -> list[Pointer]:
    """Redirects and canonical URLs whose target is no page."""
    return await Made(connection, Pointer).all(
        f"""
        SELECT d.url_hash, d.reason, k.target, t.outcome,
               t.reason IS NOT DISTINCT FROM 'redirect_loop'
        {_DUPLICATES}
           AND d.reason IN ('redirect', 'canonical') AND {_IS_NO_PAGE}
         ORDER BY d.url_hash
        """,
        (job_id, first, last),
    )


async def select_left_copies(
    connection: Connection, job_id: UUID, first: bytes, last: bytes
) -> list[tuple[bytes, bytes]]:
    """Copies (key and content) of what is no page, or says something else by now."""
    return await Tuples(connection).all(
        f"""
        SELECT d.url_hash, d.content_hash
        {_DUPLICATES}
           AND d.reason = 'content'
           AND ({_IS_NO_PAGE} OR t.content_hash IS DISTINCT FROM d.content_hash)
         ORDER BY d.url_hash
        """,
        (job_id, first, last),
    )


async def repoint_copies(
    connection: Connection, job_id: UUID, keys: Sequence[bytes], pages: Sequence[bytes]
) -> None:
    """Make each copy a duplicate of the page at the same position of the list."""
    await connection.execute(
        """
        UPDATE crawl_visited copy
           SET duplicate_of = page.url, detail = 'repeats ' || page.url
          FROM unnest(%(keys)b::bytea[], %(pages)b::bytea[]) AS pair (copy, page)
          JOIN crawl_visited page ON page.job_id = %(job)s AND page.url_hash = pair.page
         WHERE copy.job_id = %(job)s AND copy.url_hash = pair.copy
        """,
        {"job": job_id, "keys": list(keys), "pages": list(pages)},
    )


async def select_archived(
    connection: Connection, job_id: UUID, keys: Sequence[bytes]
) -> list[ArchivedUrl]:
    """Settled URLs by their keys, with the places of their responses."""
    cursor = await connection.execute(
        """
        SELECT url_hash, url, etag, last_modified, outlinks, segment, segment_offset,
               segment_length
          FROM crawl_visited
         WHERE job_id = %s AND url_hash = ANY(%s)
         ORDER BY url_hash
        """,
        (job_id, list(keys)),
    )
    return [
        ArchivedUrl(key, url, etag, modified, outlinks, ArchiveRef(*place) if place[0] else None)
        for key, url, etag, modified, outlinks, *place in await cursor.fetchall()
    ]


async def make_pages(
    connection: Connection, job_id: UUID, keys: Sequence[bytes], *, detail: str
) -> None:
    """Settled duplicates that turned out to be the only ones of their kind."""
    await connection.execute(
        """
        UPDATE crawl_visited
           SET outcome = 'fetched', reason = NULL, detail = %s, duplicate_of = NULL
         WHERE job_id = %s AND url_hash = ANY(%s)
        """,
        (detail, job_id, list(keys)),
    )


async def fail_visited(
    connection: Connection, job_id: UUID, keys: Sequence[bytes], *, reason: str, detail: str
) -> None:
    """Settled URLs that turned out to lead nowhere."""
    await connection.execute(
        """
        UPDATE crawl_visited
           SET outcome = 'failed', reason = %s, detail = %s
         WHERE job_id = %s AND url_hash = ANY(%s)
        """,
        (reason, detail, job_id, list(keys)),
    )
