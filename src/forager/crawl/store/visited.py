"""SQL of settled URLs, one batch at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString, cast
from uuid import UUID

from forager.archive.segment import ArchiveRef, ref_columns
from forager.crawl.settlement import Settlement
from forager.db.database import Connection
from forager.db.rows import RowArrays, Tuples, Values
from forager.extract.document import OF_MARKDOWN

# pages of the crawl's generation; the same condition as in the index of contents
IS_PAGE: LiteralString = "(outcome IN ('fetched', 'unchanged') OR carried_over)"


_SETTLED = RowArrays(
    "n", key="bytea", url="text", outcome="text", reason="text", detail="text",
    duplicate_of="text", carried_over="boolean", http_status="smallint", depth="smallint",
    parent="bytea", via="text", attempts="smallint", content_type="text", title="text",
    size="int", duration_ms="int", content_hash="bytea", etag="text", last_modified="text",
    outlinks="bytea", rendering="text", segment="text", segment_offset="bigint",
    segment_length="int",
)  # fmt: skip
_OF_ENTRY: dict[str, str] = {
    name: f"entry.{name}" for name in ("key", "url", "depth", "parent", "via", "attempts")
}


async def insert_visited(
    connection: Connection,
    job_id: UUID,
    settled: Sequence[Settlement],
    refs: Sequence[ArchiveRef | None],
) -> None:
    """Add settled URLs with their outcomes and the places of their responses."""
    await connection.execute(
        f"""
        INSERT INTO crawl_visited
            (job_id, url_hash, url, outcome, reason, detail, duplicate_of, carried_over,
             http_status, depth, parent, via, attempts, content_type, title, size, duration_ms,
             content_hash, etag, last_modified, outlinks, rendering, segment, segment_offset,
             segment_length)
        SELECT %(job_id)s, n.*
          FROM {_SETTLED}
        """,
        {"job_id": job_id, **_SETTLED.values(settled, **_OF_ENTRY, **ref_columns(refs))},
    )


async def delete_visited(connection: Connection, job_id: UUID, keys: Sequence[bytes]) -> None:
    """Forget settled URLs, which are then new to the crawl."""
    await connection.execute(
        "DELETE FROM crawl_visited WHERE job_id = %s AND url_hash = ANY(%s)", (job_id, list(keys))
    )


async def replace_contents(
    connection: Connection, job_id: UUID, before: Sequence[bytes], after: Sequence[bytes]
) -> None:
    """Pages that were read again say something else, and so do their copies."""
    await connection.execute(
        """
        UPDATE crawl_visited v
           SET content_hash = c.after
          FROM unnest(%(before)b::bytea[], %(after)b::bytea[]) AS c (before, after)
         WHERE v.job_id = %(job)s AND v.content_hash = c.before
        """,
        {"job": job_id, "before": list(before), "after": list(after)},
    )


async def select_url_of_content(
    connection: Connection, job_id: UUID, content_hash: bytes
) -> str | None:
    """The page of this crawl that has the same content."""
    return await Values(connection).first(
        f"""
        SELECT url FROM crawl_visited
         WHERE job_id = %s AND content_hash = %s AND {IS_PAGE} AND content_hash IS NOT NULL
         LIMIT 1
        """,
        (job_id, content_hash),
    )


async def select_expected_url(
    connection: Connection, job_id: UUID, base_id: int, content_hash: bytes
) -> str | None:
    """A page of the base generation with this content, that the job has yet to settle."""
    return await Values(connection).first(
        """
        SELECT before.url
          FROM crawl_visited before
          JOIN generation_documents line
            ON line.generation_id = %(base)s AND line.url_hash = before.url_hash
          JOIN crawl_frontier waiting
            ON waiting.job_id = %(job)s AND waiting.url_hash = before.url_hash
         WHERE before.job_id = (SELECT job_id FROM generations WHERE id = %(base)s)
           AND before.content_hash = %(content)s
           AND (before.outcome IN ('fetched', 'unchanged') OR before.carried_over)
           AND before.content_hash IS NOT NULL
         LIMIT 1
        """,
        {"job": job_id, "base": base_id, "content": content_hash},
    )


async def select_page_as_markdown(
    connection: Connection,
    job_id: UUID,
    generation_id: int,
    base_id: int | None,
    keys: Sequence[bytes],
) -> str | None:
    """One of these pages that was read as markdown: by the job, or before and it is waiting."""
    return await Values(connection).first(
        """
        SELECT page.url
          FROM generation_documents line
          JOIN documents page ON page.id = line.document_id
         WHERE line.generation_id IN (%(generation)s, %(base)s)
           AND line.url_hash = ANY(%(keys)s)
           AND right(page.extractor_version, length(%(markdown)s)) = %(markdown)s
           AND (line.generation_id = %(generation)s
                OR EXISTS (SELECT FROM crawl_frontier waiting
                            WHERE waiting.job_id = %(job)s AND waiting.url_hash = line.url_hash))
         LIMIT 1
        """,
        {
            "job": job_id,
            "generation": generation_id,
            "base": base_id,
            "keys": list(keys),
            "markdown": OF_MARKDOWN,
        },
    )


async def settled_as_page(connection: Connection, job_id: UUID, key: bytes) -> bool | None:
    """Whether a URL is a page of the crawl; None if it is not settled."""
    return await Values(connection).first(
        f"SELECT {IS_PAGE} FROM crawl_visited WHERE job_id = %s AND url_hash = %s", (job_id, key)
    )


CHUNK = 20_000

# key and URL; of settled ones also the reason, and of pages their content
Known = tuple[bytes, str, str | None, bytes | None]


async def select_known_visited(
    connection: Connection, job_id: UUID, *, after: bytes
) -> list[Known]:
    """The next settled URLs after a key."""
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


Place = tuple[int, int]


async def select_known_frontier(
    connection: Connection, job_id: UUID, *, after: Place, before: int
) -> tuple[list[Known], Place]:
    """The next pending URLs after a place, and the place of the last one; found before a seq."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(
            """
            SELECT depth, seq, url_hash, url
              FROM crawl_frontier
             WHERE job_id = %s AND (depth, seq) > (%s, %s) AND seq < %s
             ORDER BY depth, seq
             LIMIT %s
            """,
            (job_id, *after, before, CHUNK),
        )
        rows = await cursor.fetchall()
    place = (rows[-1][0], rows[-1][1]) if rows else after
    return [(key, url, None, None) for _, _, key, url in rows], place


async def select_known(
    connection: Connection, job_id: UUID, keys: Sequence[bytes], *, after: Place, before: int
) -> tuple[list[Known], list[bytes]]:
    """Those of these URLs that are settled, and those that are pending between two places.

    The frontier has no index of keys, so all of it between these places is read, unless every URL
    is settled. One statement for both: a URL that is settled meanwhile is in one of them.
    """
    rows = await Tuples(connection).all(
        f"""
        WITH settled AS MATERIALIZED (
            SELECT url_hash, url, reason, CASE WHEN {IS_PAGE} THEN content_hash END AS content
              FROM crawl_visited
             WHERE job_id = %(job)s AND url_hash = ANY(%(keys)s)
        ), others AS MATERIALIZED (
            SELECT unnest(%(keys)s::bytea[]) AS url_hash EXCEPT SELECT url_hash FROM settled
        )
        SELECT url_hash, url, reason, content
          FROM settled
         UNION ALL
        SELECT url_hash, NULL, NULL, NULL
          FROM crawl_frontier
          JOIN others USING (url_hash)
         WHERE job_id = %(job)s AND (depth, seq) > (%(depth)s, %(seq)s) AND seq < %(before)s
        """,
        {"job": job_id, "keys": keys, "depth": after[0], "seq": after[1], "before": before},
    )
    settled = [row for row in rows if row[1] is not None]
    return settled, [row[0] for row in rows if row[1] is None]


async def requeue_failed(
    connection: Connection, job_id: UUID, reasons: Sequence[str], *, first_seq: int
) -> list[tuple[bytes, str, bool]]:
    """Move failed URLs back into the frontier: key, reason, and whether it was carried over."""
    return await Tuples(connection).all(
        """
        WITH gone AS (
            DELETE FROM crawl_visited
             WHERE job_id = %(job_id)s AND outcome = 'failed' AND reason = ANY(%(reasons)s)
            RETURNING url_hash, url, depth, parent, via, reason, carried_over
        ), pending AS (
            INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, parent, via)
            SELECT %(job_id)s, depth, %(first)s - 1 + row_number() OVER (ORDER BY depth, url_hash),
                   url_hash, url, parent, via
              FROM gone
        )
        SELECT url_hash, reason, carried_over FROM gone
        """,
        {"job_id": job_id, "reasons": list(reasons), "first": first_seq},
    )
