"""SQL of the frontier: the URLs that a crawl still has to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.settlement import Postponed
from forager.db.database import Connection
from forager.db.rows import Made, RowArrays, Values
from forager.extract.urls import NormalizedUrl

_NEW = RowArrays(
    "n", depth="smallint", seq="bigint", url_hash="bytea", url="text", parent="bytea", via="text",
    hops="text",
)  # fmt: skip
_PLACES = RowArrays("place", depth="smallint", seq="bigint")
_LATER = RowArrays("later", depth="smallint", seq="bigint", seconds="float8")


async def insert_entries(
    connection: Connection, job_id: UUID, entries: Sequence[FrontierEntry]
) -> None:
    """Add URLs to the frontier, as one statement of the commit that found them."""
    await connection.execute(
        f"""
        INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, parent, via, redirects)
        SELECT %(job_id)s, n.depth, n.seq, n.url_hash, n.url, n.parent, n.via,
               CASE WHEN n.hops = '' THEN NULL
                    ELSE (SELECT array_agg(decode(hop, 'hex') ORDER BY place)
                            FROM unnest(string_to_array(n.hops, ','))
                                 WITH ORDINALITY AS followed (hop, place))
               END
          FROM {_NEW}
        """,
        {
            "job_id": job_id,
            **_NEW.values(
                entries,
                url_hash="key",
                hops=[",".join(key.hex() for key in entry.redirects) for entry in entries],
            ),
        },
    )


async def delete_entries(
    connection: Connection, job_id: UUID, entries: Sequence[FrontierEntry]
) -> None:
    """Remove URLs that are settled."""
    await connection.execute(
        f"""
        DELETE FROM crawl_frontier f
         USING {_PLACES}
         WHERE f.job_id = %(job_id)s AND f.depth = place.depth AND f.seq = place.seq
        """,
        {"job_id": job_id, **_PLACES.values(entries)},
    )


async def postpone_entries(
    connection: Connection, job_id: UUID, postponed: Sequence[Postponed]
) -> None:
    """Count an attempt of each URL, and set when it may be tried again."""
    await connection.execute(
        f"""
        UPDATE crawl_frontier f
           SET attempts = f.attempts + 1,
               not_before = now() + later.seconds * interval '1 second'
          FROM {_LATER}
         WHERE f.job_id = %(job_id)s AND f.depth = later.depth AND f.seq = later.seq
        """,
        {"job_id": job_id, **_LATER.values(postponed, depth="entry.depth", seq="entry.seq")},
    )


# scheme, host and port of a URL: all before its third slash
_ORIGIN = "split_part(url, '/', 1) || '//' || split_part(url, '/', 3)"
ENTRY = "depth, seq, url_hash, url, parent, via, attempts, redirects"


async def select_entries(
    connection: Connection,
    job_id: UUID,
    *,
    after: tuple[int, int],
    besides: Sequence[str] = (),
    limit: int,
) -> list[FrontierEntry]:
    """The next entries behind a place, besides those of some origins.

    Starting there spares the dead rows before it.
    """
    others = f"AND {_ORIGIN} <> ALL(%s)" if besides else "AND %s::text[] IS NOT NULL"
    return await Made(connection, _entry).all(
        f"""
        SELECT {ENTRY}
          FROM crawl_frontier
         WHERE job_id = %s AND (depth, seq) > (%s, %s) AND not_before IS NULL {others}
         ORDER BY depth, seq
         LIMIT %s
        """,
        (job_id, *after, list(besides), limit),
    )


async def select_retries(
    connection: Connection, job_id: UUID, *, besides: Sequence[int], limit: int
) -> list[FrontierEntry]:
    """Postponed entries that are due, besides those that are being fetched."""
    return await Made(connection, _entry).all(
        f"""
        SELECT {ENTRY}
          FROM crawl_frontier
         WHERE job_id = %s AND not_before <= now() AND seq <> ALL(%s::bigint[])
         ORDER BY not_before
         LIMIT %s
        """,
        (job_id, besides, limit),
    )


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


def _entry(
    depth: int,
    seq: int,
    key: bytes,
    url: str,
    parent: bytes | None,
    via: str,
    attempts: int,
    redirects: list[bytes] | None,
) -> FrontierEntry:
    hops = tuple(redirects or ())
    return FrontierEntry(depth, seq, key, NormalizedUrl(url), Via(via), parent, attempts, hops)
