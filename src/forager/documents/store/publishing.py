"""SQL of publishing, of refresh schedules, and of the links that lead to a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import orjson
import zstandard
from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Tuples
from forager.documents.generation import CrawlEffort, Schedule, SourceDeclaration
from forager.documents.store.words import delete_derived
from forager.extract.keys import url_key


async def lock_source(connection: Connection, source_id: str) -> None:
    """Lock a source's row until the end of the transaction."""
    await connection.execute("SELECT FROM sources WHERE id = %s FOR NO KEY UPDATE", (source_id,))


async def set_limits(
    connection: Connection,
    source_id: str,
    *,
    keep: int | None,
    max_shrink: float | None,
    max_failed: float | None,
) -> None:
    """Set the given limits of a source."""
    await connection.execute(
        """
        UPDATE sources
           SET keep_generations = coalesce(%(keep)s, keep_generations),
               max_shrink = coalesce(%(max_shrink)s, max_shrink),
               max_failed = coalesce(%(max_failed)s, max_failed),
               updated_at = now()
         WHERE id = %(id)s
        """,
        {"id": source_id, "keep": keep, "max_shrink": max_shrink, "max_failed": max_failed},
    )


async def select_effort(connection: Connection, job_id: UUID) -> CrawlEffort:
    """The URLs that a job tried and its failures, by its ledger."""
    cursor = await connection.execute(
        """
        SELECT fetched + unchanged + duplicate + failed, failed,
               coalesce(reasons -> 'failed', '{}')
          FROM crawl_states
         WHERE job_id = %s
        """,
        (job_id,),
    )
    row = await cursor.fetchone()
    return CrawlEffort() if row is None else CrawlEffort(*row)


async def activate_generation(
    connection: Connection, source_id: str, generation_id: int, expected: int | None
) -> bool:
    """Let readers see a generation, if they see the expected one now."""
    return await Tuples(connection).changed(
        """
        UPDATE sources
           SET published_generation = %(generation)s, updated_at = now()
         WHERE id = %(source)s AND published_generation IS NOT DISTINCT FROM %(expected)s
        """,
        {"source": source_id, "generation": generation_id, "expected": expected},
    )


async def retire_published(connection: Connection, source_id: str) -> None:
    """Retire the published generation of a source."""
    await connection.execute(
        """
        UPDATE generations
           SET state = 'retired', retired_at = now()
         WHERE source_id = %s AND state = 'published'
        """,
        (source_id,),
    )


async def mark_published(connection: Connection, generation_id: int, note: str | None) -> bool:
    """False if it was abandoned at this moment: its pages are being deleted."""
    return await Tuples(connection).changed(
        """
        UPDATE generations
           SET state = 'published', published_at = now(), retired_at = NULL, note = %s
         WHERE id = %s AND state <> 'abandoned'
        """,
        (note, generation_id),
    )


async def hold_back(connection: Connection, generation_id: int, note: str) -> None:
    """Retire a complete generation that must not be published by itself; `note` is the reason."""
    await connection.execute(
        "UPDATE generations SET state = 'retired', retired_at = now(), note = %s WHERE id = %s",
        (note, generation_id),
    )


async def count_removed(connection: Connection, generation_id: int) -> None:
    """Count the pages of the base that were not found again, from the other counts."""
    await connection.execute(
        """
        UPDATE generations g
           SET removed = b.pages - g.changed - g.unchanged - g.carried_over
          FROM generations b
         WHERE g.id = %s AND b.id = g.base_id
        """,
        (generation_id,),
    )


async def remember_job(
    connection: Connection,
    source_id: str,
    kind: str,
    payload: dict[str, Any],
    *,
    base_url: str,
    asked: datetime,
) -> None:
    """Let refreshes run with the options of the job that was published.

    Options that were declared after the job was requested at `asked` stay.
    """
    await connection.execute(
        """
        UPDATE sources SET kind = %s, payload = %s, base_url = %s
         WHERE id = %s AND (declared_at IS NULL OR declared_at <= %s)
        """,
        (kind, Jsonb(payload), base_url, source_id, asked),
    )


async def merge_payload(connection: Connection, source_id: str, values: dict[str, Any]) -> None:
    """Replace some options of the crawls of a source."""
    await connection.execute(
        "UPDATE sources SET payload = payload || %s WHERE id = %s", (Jsonb(values), source_id)
    )


async def declare_sources(
    connection: Connection, declared: Sequence[SourceDeclaration], now: datetime
) -> None:
    """Create sources, or let their refreshes run with declared options and schedules.

    A schedule that stays the same keeps its next time. Rows are locked in the order of their ids.
    """
    rows = [
        {**asdict(each), **asdict(each.schedule), "first": each.schedule.after(now)}
        for each in sorted(declared, key=lambda each: each.id)
    ]
    await connection.execute(
        """
        INSERT INTO sources AS s
            (id, base_url, kind, payload, declared_at, refresh_every, refresh_cron, next_refresh_at)
        SELECT n.id, n.base_url, n.kind, n.payload, now(), n.every, n.cron, n.first
          FROM json_to_recordset(%s::json)
               AS n (id text, base_url text, kind text, payload jsonb, every int, cron text,
                     first timestamptz)
        ON CONFLICT (id) DO UPDATE
           SET deleted_at = NULL,
               base_url = excluded.base_url,
               kind = excluded.kind,
               payload = excluded.payload,
               declared_at = excluded.declared_at,
               refresh_every = excluded.refresh_every,
               refresh_cron = excluded.refresh_cron,
               next_refresh_at =
                   CASE WHEN (s.refresh_every, s.refresh_cron)
                             IS DISTINCT FROM (excluded.refresh_every, excluded.refresh_cron)
                        THEN excluded.next_refresh_at
                        ELSE s.next_refresh_at END,
               updated_at = now()
        """,
        (orjson.dumps(rows).decode(),),
    )


# link sets that are read; those of a larger site are a sample
SAMPLE = 20_000
# a set whose links are longer belongs to no page that people read
MAX_BYTES = 2**20


async def count_inbound_links(connection: Connection, generation_id: int) -> None:
    """Count the links between the pages of a generation; again, if they were counted before."""
    await delete_derived(connection, generation_id, "inbound_links")
    counts: Counter[str] = Counter()
    async for links, pages in _link_sets(connection, generation_id):
        urls = set(links.split("\n"))
        if pages == 1:  # as nearly all have, and several times as fast
            counts.update(urls)
        else:
            counts.update(dict.fromkeys(urls, pages))
    counts.pop("", None)
    await connection.execute(
        """
        INSERT INTO inbound_links (generation_id, document_id, pages)
        SELECT m.generation_id, m.document_id, max(c.pages)
          FROM unnest(%s::bytea[], %s::integer[]) AS c (url_hash, pages)
          JOIN generation_documents m ON m.generation_id = %s AND m.url_hash = c.url_hash
         GROUP BY m.generation_id, m.document_id
        """,
        ([url_key(url) for url in counts], list(counts.values()), generation_id),
    )


async def _link_sets(connection: Connection, generation_id: int) -> AsyncIterator[tuple[str, int]]:
    """Sets of links, and how many pages have each."""
    unpacker = zstandard.ZstdDecompressor()
    async with connection.cursor(name="link_sets") as cursor:
        await cursor.execute(
            """
            SELECT l.links, m.pages
              FROM (SELECT link_set, count(*)::int AS pages
                      FROM generation_documents
                     WHERE generation_id = %(generation)s AND link_set IS NOT NULL
                     GROUP BY link_set
                     ORDER BY link_set
                     LIMIT %(sample)s) m
              JOIN generations g ON g.id = %(generation)s
              JOIN link_sets l ON l.source_id = g.source_id AND l.hash = m.link_set
            """,
            {"generation": generation_id, "sample": SAMPLE},
        )
        async for packed, pages in cursor:
            try:
                text = unpacker.decompress(packed, max_output_size=MAX_BYTES).decode()
            except (zstandard.ZstdError, UnicodeDecodeError):
                continue
            yield text, pages


# hashes that differ in at most this many bits are those of nearly the same text
NEAR_BITS = 6
# Two such hashes are likely to share one of four bands of 16 bits. Within a band, each is compared
# with the next four, so that the work grows with the pages and not with their pairs.
MAX_PAIRS = 2_000_000

_NEAR_PAIRS: LiteralString = f"""
    WITH band AS (
        SELECT m.document_id, d.simhash, number, (d.simhash >> (16 * number)) & 65535 AS bits
          FROM generation_documents m
          JOIN documents d ON d.id = m.document_id AND d.simhash IS NOT NULL
         CROSS JOIN generate_series(0, 3) AS number
         WHERE m.generation_id = %(generation)s
    ), neighbor AS (
        SELECT document_id, simhash,
               unnest(ARRAY[lead(document_id, 1) OVER w, lead(document_id, 2) OVER w,
                            lead(document_id, 3) OVER w, lead(document_id, 4) OVER w]) AS other_id,
               unnest(ARRAY[lead(simhash, 1) OVER w, lead(simhash, 2) OVER w,
                            lead(simhash, 3) OVER w, lead(simhash, 4) OVER w]) AS other
          FROM band
        WINDOW w AS (PARTITION BY number, bits ORDER BY simhash, document_id)
    )
    SELECT DISTINCT document_id, other_id
      FROM neighbor
     WHERE other IS NOT NULL AND document_id <> other_id
       AND bit_count((simhash # other)::bit(64)) <= {NEAR_BITS}
     LIMIT {MAX_PAIRS}
"""


async def find_near_duplicates(connection: Connection, generation_id: int) -> int:
    """Store clusters of pages with nearly the same text; return how many pages are in one."""
    await delete_derived(connection, generation_id, "near_duplicates")
    cursor = await connection.execute(_NEAR_PAIRS, {"generation": generation_id})
    first: dict[int, int] = {}

    def root(document: int) -> int:
        while (above := first.setdefault(document, document)) != document:
            first[document] = first[above]
            document = above
        return document

    async for one, other in cursor:
        low, high = sorted((root(one), root(other)))
        first[high] = low
    if not first:
        return 0
    await connection.execute(
        """
        INSERT INTO near_duplicates (generation_id, document_id, cluster)
        SELECT %s, n.* FROM unnest(%s::bigint[], %s::bigint[]) AS n
        """,
        (generation_id, list(first), [root(document) for document in first]),
    )
    return len(first)


async def set_schedule(
    connection: Connection, source_id: str, schedule: Schedule, first: datetime | None
) -> None:
    """Set when a source is refreshed: its interval or cron expression, and the first time."""
    await connection.execute(
        """
        UPDATE sources
           SET refresh_every = %s, refresh_cron = %s, next_refresh_at = %s, updated_at = now()
         WHERE id = %s
        """,
        (schedule.every, schedule.cron, first, source_id),
    )


async def select_due(connection: Connection, limit: int) -> list[tuple[str, datetime]]:
    """Sources whose refresh is due, and since when."""
    return await Tuples(connection).all(
        """
        SELECT id, next_refresh_at
          FROM sources
         WHERE next_refresh_at <= now() AND deleted_at IS NULL
         ORDER BY next_refresh_at
         LIMIT %s
        """,
        (limit,),
    )


async def advance(
    connection: Connection, source_id: str, due: datetime, following: datetime | None
) -> bool:
    """Advance to the next time, unless another process did or changed the schedule."""
    return await Tuples(connection).changed(
        "UPDATE sources SET next_refresh_at = %s WHERE id = %s AND next_refresh_at = %s",
        (following, source_id, due),
    )
