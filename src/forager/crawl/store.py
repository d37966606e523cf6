"""The crawl's SQL. A batch touches only its own rows: its cost does not grow with the crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.archive.segment import ArchiveRef
from forager.crawl.entry import Entry, Via
from forager.crawl.settlement import Postponed, Settlement
from forager.db.database import Connection
from forager.extract.urls import NormalisedUrl

# --- the state of a crawl --------------------------------------------------------------


async def insert_state(connection: Connection, job_id: UUID) -> None:
    await connection.execute(
        "INSERT INTO crawl_states (job_id, discovered) VALUES (%s, 0) ON CONFLICT DO NOTHING",
        (job_id,),
    )


async def update_state(connection: Connection, job_id: UUID, values: dict[str, Any]) -> None:
    """Write the ledger and where the crawl stands. The table's constraint balances it."""
    await connection.execute(
        """
        UPDATE crawl_states
           SET discovered = %(discovered)s,
               fetched = %(fetched)s,
               unchanged = %(unchanged)s,
               duplicate = %(duplicate)s,
               failed = %(failed)s,
               excluded = %(excluded)s,
               total_pending = %(pending)s,
               total_processed = %(processed)s,
               current_depth = %(depth)s,
               reasons = %(reasons)s,
               bytes_fetched = %(bytes_fetched)s,
               seconds = %(seconds)s,
               next_seq = %(next_seq)s,
               checkpoint = %(checkpoint)s,
               updated_at = now()
         WHERE job_id = %(job_id)s
        """,
        {
            **values,
            "job_id": job_id,
            "reasons": Jsonb(values["reasons"]),
            "checkpoint": Jsonb(values["checkpoint"]),
        },
    )


async def update_progress(connection: Connection, job_id: UUID, percentage: int) -> None:
    """Progress never goes back."""
    await connection.execute(
        """
        UPDATE crawl_jobs
           SET progress_percentage = %(percentage)s
         WHERE id = %(job_id)s AND progress_percentage < %(percentage)s
        """,
        {"job_id": job_id, "percentage": percentage},
    )


async def select_state(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    cursor = await connection.execute(
        """
        SELECT discovered, fetched, unchanged, duplicate, failed, excluded, total_pending,
               current_depth, reasons, bytes_fetched, seconds, next_seq, checkpoint
          FROM crawl_states
         WHERE job_id = %s AND discovered IS NOT NULL
        """,
        (job_id,),
    )
    row = await cursor.fetchone()
    if row is None or cursor.description is None:
        return None
    return dict(zip((column.name for column in cursor.description), row, strict=True))


# --- the frontier ----------------------------------------------------------------------


async def insert_entries(connection: Connection, job_id: UUID, entries: Sequence[Entry]) -> None:
    await connection.execute(
        """
        INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, parent, via, redirects)
        SELECT %(job_id)s, n.depth, n.seq, n.url_hash, n.url, n.parent, n.via,
               CASE WHEN n.redirects = '' THEN NULL
                    ELSE (SELECT array_agg(decode(hop, 'hex') ORDER BY place)
                            FROM unnest(string_to_array(n.redirects, ','))
                                 WITH ORDINALITY AS hops (hop, place))
               END
          FROM unnest(%(depths)s::smallint[], %(seqs)s::bigint[], %(keys)s::bytea[],
                      %(urls)s::text[], %(parents)s::bytea[], %(vias)s::text[],
                      %(redirects)s::text[])
               AS n (depth, seq, url_hash, url, parent, via, redirects)
        """,
        {
            "job_id": job_id,
            "depths": [entry.depth for entry in entries],
            "seqs": [entry.seq for entry in entries],
            "keys": [entry.key for entry in entries],
            "urls": [entry.url for entry in entries],
            "parents": [entry.parent for entry in entries],
            "vias": [entry.via for entry in entries],
            "redirects": [",".join(key.hex() for key in entry.redirects) for entry in entries],
        },
    )


async def delete_entries(connection: Connection, job_id: UUID, entries: Sequence[Entry]) -> None:
    await connection.execute(
        """
        DELETE FROM crawl_frontier f
         USING unnest(%(depths)s::smallint[], %(seqs)s::bigint[]) AS gone (depth, seq)
         WHERE f.job_id = %(job_id)s AND f.depth = gone.depth AND f.seq = gone.seq
        """,
        {
            "job_id": job_id,
            "depths": [entry.depth for entry in entries],
            "seqs": [entry.seq for entry in entries],
        },
    )


async def postpone_entries(
    connection: Connection, job_id: UUID, postponed: Sequence[Postponed]
) -> None:
    await connection.execute(
        """
        UPDATE crawl_frontier f
           SET attempts = f.attempts + 1,
               not_before = now() + later.seconds * interval '1 second'
          FROM unnest(%(depths)s::smallint[], %(seqs)s::bigint[], %(seconds)s::float8[])
               AS later (depth, seq, seconds)
         WHERE f.job_id = %(job_id)s AND f.depth = later.depth AND f.seq = later.seq
        """,
        {
            "job_id": job_id,
            "depths": [item.entry.depth for item in postponed],
            "seqs": [item.entry.seq for item in postponed],
            "seconds": [item.seconds for item in postponed],
        },
    )


ENTRY = "depth, seq, url_hash, url, parent, via, attempts, redirects"


async def select_entries(
    connection: Connection, job_id: UUID, *, after: tuple[int, int], limit: int
) -> list[Entry]:
    """The next entries behind a place. Starting there spares the dead rows before it."""
    cursor = await connection.execute(
        f"""
        SELECT {ENTRY}
          FROM crawl_frontier
         WHERE job_id = %s AND (depth, seq) > (%s, %s) AND not_before IS NULL
         ORDER BY depth, seq
         LIMIT %s
        """,
        (job_id, *after, limit),
    )
    return [_entry(row) for row in await cursor.fetchall()]


async def select_retries(connection: Connection, job_id: UUID, *, limit: int) -> list[Entry]:
    """Postponed entries whose time has come."""
    cursor = await connection.execute(
        f"""
        SELECT {ENTRY}
          FROM crawl_frontier
         WHERE job_id = %s AND not_before <= now()
         ORDER BY not_before
         LIMIT %s
        """,
        (job_id, limit),
    )
    return [_entry(row) for row in await cursor.fetchall()]


async def select_next_retry(connection: Connection, job_id: UUID) -> float | None:
    """Seconds until the next postponed entry is due; None if there is none."""
    cursor = await connection.execute(
        """
        SELECT extract(epoch FROM min(not_before) - now())::float8
          FROM crawl_frontier
         WHERE job_id = %s AND not_before IS NOT NULL
        """,
        (job_id,),
    )
    row = await cursor.fetchone()
    return None if row is None else row[0]


def _entry(row: Sequence[Any]) -> Entry:
    depth, seq, key, url, parent, via, attempts, redirects = row
    return Entry(
        depth=depth,
        seq=seq,
        key=bytes(key),
        url=NormalisedUrl(url),
        via=Via(via),
        parent=None if parent is None else bytes(parent),
        attempts=attempts,
        redirects=tuple(bytes(hop) for hop in redirects or ()),
    )


# --- settled URLs --------------------------------------------------------------------------------


async def insert_visited(
    connection: Connection,
    job_id: UUID,
    settled: Sequence[Settlement],
    refs: Sequence[ArchiveRef | None],
) -> None:
    await connection.execute(
        """
        INSERT INTO crawl_visited
            (job_id, url_hash, url, outcome, reason, detail, duplicate_of, http_status, depth,
             parent, via, attempts, content_type, title, size, duration_ms, content_hash, etag,
             last_modified, outlinks, segment, segment_offset, segment_length)
        SELECT %(job_id)s, n.*
          FROM unnest(%(keys)s::bytea[], %(urls)s::text[], %(outcomes)s::text[],
                      %(reasons)s::text[], %(details)s::text[], %(duplicates)s::text[],
                      %(statuses)s::smallint[], %(depths)s::smallint[], %(parents)s::bytea[],
                      %(vias)s::text[], %(attempts)s::smallint[], %(types)s::text[],
                      %(titles)s::text[], %(sizes)s::int[], %(durations)s::int[],
                      %(hashes)s::bytea[], %(etags)s::text[], %(modified)s::text[],
                      %(outlinks)s::bytea[], %(segments)s::text[], %(offsets)s::bigint[],
                      %(lengths)s::int[]) AS n
        """,
        {
            "job_id": job_id,
            "keys": [s.entry.key for s in settled],
            "urls": [s.entry.url for s in settled],
            "outcomes": [s.outcome for s in settled],
            "reasons": [s.reason for s in settled],
            "details": [s.detail for s in settled],
            "duplicates": [s.duplicate_of for s in settled],
            "statuses": [s.http_status for s in settled],
            "depths": [s.entry.depth for s in settled],
            "parents": [s.entry.parent for s in settled],
            "vias": [s.entry.via for s in settled],
            "attempts": [s.entry.attempts for s in settled],
            "types": [s.content_type for s in settled],
            "titles": [s.title for s in settled],
            "sizes": [s.size for s in settled],
            "durations": [s.duration_ms for s in settled],
            "hashes": [s.content_hash for s in settled],
            "etags": [s.etag for s in settled],
            "modified": [s.last_modified for s in settled],
            "outlinks": [s.outlinks for s in settled],
            "segments": [ref and ref.segment for ref in refs],
            "offsets": [None if ref is None else ref.offset for ref in refs],
            "lengths": [None if ref is None else ref.length for ref in refs],
        },
    )


async def delete_visited(connection: Connection, job_id: UUID, keys: Sequence[bytes]) -> None:
    await connection.execute(
        "DELETE FROM crawl_visited WHERE job_id = %s AND url_hash = ANY(%s)", (job_id, list(keys))
    )


async def select_url_of_content(
    connection: Connection, job_id: UUID, content_hash: bytes
) -> str | None:
    cursor = await connection.execute(
        """
        SELECT url FROM crawl_visited
         WHERE job_id = %s AND content_hash = %s
           AND outcome = 'fetched' AND content_hash IS NOT NULL
         LIMIT 1
        """,
        (job_id, content_hash),
    )
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def select_outcomes(
    connection: Connection, job_id: UUID, keys: Sequence[bytes]
) -> dict[bytes, str]:
    cursor = await connection.execute(
        "SELECT url_hash, outcome FROM crawl_visited WHERE job_id = %s AND url_hash = ANY(%s)",
        (job_id, list(keys)),
    )
    return {bytes(row[0]): row[1] for row in await cursor.fetchall()}


async def select_details(connection: Connection, job_id: UUID, keys: Sequence[bytes]) -> list[str]:
    """Why some URLs were not fetched, in words."""
    cursor = await connection.execute(
        """
        SELECT url || ': ' || coalesce(detail, reason, outcome)
          FROM crawl_visited
         WHERE job_id = %s AND url_hash = ANY(%s)
         ORDER BY url
         LIMIT 5
        """,
        (job_id, list(keys)),
    )
    return [row[0] for row in await cursor.fetchall()]


async def select_duplicates(
    connection: Connection, job_id: UUID, reason: str
) -> list[tuple[bytes, str]]:
    """Key and target of all duplicates for one reason."""
    cursor = await connection.execute(
        """
        SELECT url_hash, duplicate_of
          FROM crawl_visited
         WHERE job_id = %s AND outcome = 'duplicate' AND reason = %s
        """,
        (job_id, reason),
    )
    return [(bytes(row[0]), row[1]) for row in await cursor.fetchall()]


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


# --- refilling the memory of a resumed crawl ------------------------------------------------

CHUNK = 20_000


async def stream_known(connection: Connection, job_id: UUID) -> AsyncIterator[Sequence[Any]]:
    """Key, URL, and for settled ones outcome, reason and content hash, of everything known."""
    async with connection.transaction(), connection.cursor("known", binary=True) as cursor:
        cursor.itersize = CHUNK
        await cursor.execute(
            """
            SELECT url_hash, url, outcome, reason, content_hash
              FROM crawl_visited WHERE job_id = %(job_id)s
            UNION ALL
            SELECT url_hash, url, NULL, NULL, NULL
              FROM crawl_frontier WHERE job_id = %(job_id)s
            """,
            {"job_id": job_id},
        )
        async for row in cursor:
            yield row


async def purge(connection: Connection, job_id: UUID, *, limit: int) -> int:
    """Delete some of a job's frontier and visited rows; they have no cascade. Zero: none left."""
    cursor = await connection.execute(
        """
        WITH frontier AS (
            DELETE FROM crawl_frontier
             WHERE ctid IN (SELECT ctid FROM crawl_frontier WHERE job_id = %(job_id)s
                             LIMIT %(limit)s)
            RETURNING 1
        ), visited AS (
            DELETE FROM crawl_visited
             WHERE ctid IN (SELECT ctid FROM crawl_visited WHERE job_id = %(job_id)s
                             LIMIT %(limit)s)
            RETURNING 1
        )
        SELECT (SELECT count(*) FROM frontier) + (SELECT count(*) FROM visited)
        """,
        {"job_id": job_id, "limit": limit},
    )
    row = await cursor.fetchone()
    return row[0] if row else 0
