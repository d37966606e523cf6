"""SQL of the frontier: the URLs that a crawl still has to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from forager.crawl.frontier.entry import Entry, Via
from forager.crawl.settlement import Postponed
from forager.db.database import Connection
from forager.db.rows import Values
from forager.extract.urls import NormalisedUrl


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


async def select_retries(
    connection: Connection, job_id: UUID, *, besides: Sequence[int], limit: int
) -> list[Entry]:
    """Postponed entries whose time has come, besides those that are tried already."""
    cursor = await connection.execute(
        f"""
        SELECT {ENTRY}
          FROM crawl_frontier
         WHERE job_id = %s AND not_before <= now() AND seq <> ALL(%s::bigint[])
         ORDER BY not_before
         LIMIT %s
        """,
        (job_id, besides, limit),
    )
    return [_entry(row) for row in await cursor.fetchall()]


async def select_next_retry(
    connection: Connection, job_id: UUID, *, besides: Sequence[int]
) -> float | None:
    """Seconds until the next postponed entry is due, besides those that are tried already."""
    return await Values(connection).first(
        """
        SELECT extract(epoch FROM min(not_before) - now())::float8
          FROM crawl_frontier
         WHERE job_id = %s AND not_before IS NOT NULL AND seq <> ALL(%s::bigint[])
        """,
        (job_id, besides),
    )


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
