"""SQL of images and their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Values
from forager.fetch.domains.store import HAS_PROXY, IN_REGION


@dataclass(frozen=True, slots=True)
class ShownImage:
    """One image as a product's page shows it."""

    product_id: int
    url: str
    url_hash: bytes
    alt_text: str | None
    image_type: str
    position: int


_SHOWN = RowArrays(
    "s", product_id="bigint", url="text", url_hash="bytea", alt_text="text", image_type="text",
    position="int",
)  # fmt: skip


async def replace_images(
    connection: Connection, product_ids: Sequence[int], shown: Sequence[ShownImage]
) -> None:
    """Make these the images of these products; those that were there keep what is known of them."""
    await connection.execute(
        f"""
        WITH shown AS (
            SELECT * FROM {_SHOWN}
        ), gone AS (
            DELETE FROM images i
             WHERE i.product_id = ANY(%(product_ids)s::bigint[])
               AND NOT EXISTS (
                SELECT FROM shown s
                 WHERE s.product_id = i.product_id AND s.url_hash = i.url_hash
               )
        )
        INSERT INTO images AS i
               (product_id, image_url, url_hash, alt_text, image_type, position)
        SELECT product_id, url, url_hash, alt_text, image_type, position
          FROM shown
         ORDER BY product_id, position
            ON CONFLICT (product_id, url_hash) DO UPDATE
           SET alt_text = excluded.alt_text,
               image_type = excluded.image_type,
               position = excluded.position
         WHERE (i.alt_text, i.image_type, i.position)
               IS DISTINCT FROM (excluded.alt_text, excluded.image_type, excluded.position)
        """,
        {**_SHOWN.values(shown), "product_ids": list(product_ids)},
    )


async def renew_old(connection: Connection, product_ids: Sequence[int], *, seconds: float) -> None:
    """Let images of products be fetched again that were settled this long ago.

    A file that is there stays, and is shown, until there is another.
    """
    await connection.execute(
        """
        UPDATE images
           SET status = 'pending', attempts = 0, next_attempt_at = now(), pending_since = now()
         WHERE product_id = ANY(%s::bigint[]) AND status <> 'pending'
           AND coalesce(fetched_at, created_at) < now() - make_interval(secs => %s)
        """,
        (sorted(product_ids), seconds),
    )


# --- fetching --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PendingImage:
    """An image to be fetched, and on which terms; `attempts` are those before this one."""

    id: int
    url: str
    url_hash: bytes
    attempts: int
    domain: str
    use_proxies: bool | None
    allow_private: bool
    # seconds that it has been pending
    waited: float


@dataclass(frozen=True, slots=True)
class NewFile:
    """What is known of a file before it is written."""

    content_hash: bytes
    path: str
    media_type: str
    width: int
    height: int
    file_size: int


@dataclass(frozen=True, slots=True)
class FileKey:
    """A file's row; one that was deleted and made again has another time."""

    content_hash: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that an address had, and when it was last asked for."""

    key: FileKey
    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order in which images are due."""

    at: datetime
    id: int


START = Place(datetime.min.replace(tzinfo=UTC), 0)


async def select_place(connection: Connection, *, after: Place, count: int) -> Place | None:
    """The place of the due image `count` places further on; None if there are fewer."""
    return await Rows(connection, Place).first(
        """
        SELECT next_attempt_at AS at, id
          FROM images
         WHERE status = 'pending' AND next_attempt_at <= now()
           AND (next_attempt_at, id) > (%s, %s)
         ORDER BY next_attempt_at, id
        OFFSET %s LIMIT 1
        """,
        (after.at, after.id, count - 1),
    )


async def claim_images(
    connection: Connection,
    *,
    limit: int,
    lease_seconds: float,
    region: str | None = None,
    task_proxies: bool = False,
    after: Place = START,
    until: Place | None = None,
) -> list[PendingImage]:
    """Images that are due, for workers of this region. No other worker gets them during the lease.

    Only those between two places, if such are named: `until` is the last to be looked at.
    """
    last: LiteralString = (
        "true" if until is None else "(next_attempt_at, id) <= (%(until_at)s, %(until_id)s)"
    )
    return await Rows(connection, PendingImage).all(
        f"""
        WITH due AS (
            SELECT id FROM images
             WHERE status = 'pending' AND next_attempt_at <= now()
               AND (next_attempt_at, id) > (%(after_at)s, %(after_id)s) AND {last}
               -- a question for each row, so that no plan reads all products for a few images
               AND (
                       SELECT {IN_REGION} AND {HAS_PROXY}
                         FROM products p JOIN domains d ON d.id = p.domain_id
                        WHERE p.id = images.product_id
                   )
             ORDER BY next_attempt_at, id
             LIMIT %(limit)s
               FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE images i
           SET next_attempt_at = now() + make_interval(secs => %(lease_seconds)s)
          FROM due, products p, domains d
         WHERE i.id = due.id AND p.id = i.product_id AND d.id = p.domain_id
        RETURNING i.id, i.image_url AS url, i.url_hash, i.attempts, d.domain_name AS domain,
                  d.use_proxies, d.allow_private,
                  extract(epoch FROM now() - i.pending_since)::float8 AS waited
        """,
        {
            "limit": limit,
            "lease_seconds": lease_seconds,
            "region": region,
            "task_proxies": task_proxies,
            "after_at": after.at,
            "after_id": after.id,
            "until_at": None if until is None else until.at,
            "until_id": None if until is None else until.id,
        },
    )


async def select_known_files(
    connection: Connection, wanted: Sequence[PendingImage], *, seconds: float
) -> dict[tuple[bytes, str], KnownFile]:
    """By URL and domain: the file that was found there not long ago, on the terms of that domain.

    What one domain may be asked for, another's terms may not allow.
    """
    cursor = await connection.execute(
        """
        SELECT DISTINCT ON (i.url_hash, d.domain_name)
               i.url_hash, d.domain_name, f.content_hash, f.created_at, i.fetched_at
          FROM unnest(%s::bytea[], %s::text[]) AS w (url_hash, domain)
          JOIN images i ON i.url_hash = w.url_hash
          JOIN products p ON p.id = i.product_id
          JOIN domains d ON d.id = p.domain_id AND d.domain_name = w.domain
          JOIN image_files f ON f.content_hash = i.content_hash
         WHERE i.status = 'stored' AND f.going_at IS NULL
           AND i.fetched_at > now() - make_interval(secs => %s)
         ORDER BY i.url_hash, d.domain_name, i.fetched_at DESC
        """,
        ([image.url_hash for image in wanted], [image.domain for image in wanted], seconds),
    )
    return {
        (row[0], row[1]): KnownFile(FileKey(row[2], row[3]), row[4])
        for row in await cursor.fetchall()
    }


async def touch_file(connection: Connection, file: NewFile) -> FileKey | None:
    """A file's row, new or known, kept for a while from now; None if it is being deleted."""
    cursor = await connection.execute(
        """
        INSERT INTO image_files AS f
               (content_hash, path, media_type, width, height, file_size)
        VALUES (%s, %s, %s, %s, %s, %s)
            ON CONFLICT (content_hash) DO UPDATE SET touched_at = now()
         WHERE f.going_at IS NULL
        RETURNING f.content_hash, f.created_at
        """,
        (
            file.content_hash,
            file.path,
            file.media_type,
            file.width,
            file.height,
            file.file_size,
        ),
    )
    row = await cursor.fetchone()
    return None if row is None else FileKey(row[0], row[1])


async def refer(
    connection: Connection,
    image_ids: Sequence[int],
    key: FileKey,
    *,
    fetched_at: datetime | None = None,
) -> int:
    """Let images have a file, if it is still the one that was meant; how many do now.

    One that is reused was fetched at the time that is given; without one, it was just now.
    The file's row is locked against its deletion, which looks again for references afterwards.
    """
    cursor = await connection.execute(
        """
        WITH file AS (
            SELECT * FROM image_files
             WHERE content_hash = %(hash)s AND created_at = %(created_at)s AND going_at IS NULL
               FOR SHARE
        )
        UPDATE images i
           SET status = 'stored', problem = NULL, content_hash = file.content_hash,
               image_path = file.path, width = file.width, height = file.height,
               file_size = file.file_size, attempts = i.attempts + %(attempts)s,
               -- one that was reused must not keep others from ever looking again
               fetched_at = coalesce(%(fetched_at)s, now())
          FROM file
         WHERE i.id = ANY(%(ids)s::bigint[]) AND i.status = 'pending'
        """,
        {
            "hash": key.content_hash,
            "created_at": key.created_at,
            "ids": sorted(image_ids),
            "fetched_at": fetched_at,
            "attempts": 1 if fetched_at is None else 0,
        },
    )
    return cursor.rowcount


async def settle_image(
    connection: Connection, image_ids: Sequence[int], *, status: str, problem: str
) -> None:
    """Say that images are refused or have failed, and why; one that has a file keeps it."""
    await connection.execute(
        """
        UPDATE images
           SET status = CASE WHEN content_hash IS NULL THEN %s ELSE 'stored' END,
               problem = %s, attempts = attempts + 1, fetched_at = now()
         WHERE id = ANY(%s::bigint[]) AND status = 'pending'
        """,
        (status, problem, sorted(image_ids)),
    )


async def put_off(
    connection: Connection,
    image_ids: Sequence[int],
    *,
    seconds: float,
    problem: str | None,
    spent: int,
) -> None:
    """Try again later; `spent` is how many attempts this one counts as."""
    await connection.execute(
        """
        UPDATE images
           SET next_attempt_at = now() + make_interval(secs => %s),
               problem = coalesce(%s, problem), attempts = attempts + %s
         WHERE id = ANY(%s::bigint[]) AND status = 'pending'
        """,
        (seconds, problem, spent, sorted(image_ids)),
    )


# --- showing ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image of a product whose file is there."""

    path: str
    media_type: str
    content_hash: bytes


async def select_stored(
    connection: Connection, product_id: int, position: int
) -> StoredImage | None:
    return await Rows(connection, StoredImage).first(
        """
        SELECT f.path, f.media_type, f.content_hash
          FROM images i JOIN image_files f USING (content_hash)
         WHERE i.product_id = %s AND i.position = %s
         ORDER BY i.id
         LIMIT 1
        """,
        (product_id, position),
    )


async def select_pages_are_due(connection: Connection, names: Sequence[str]) -> bool:
    """Whether tasks of a host's domain are due; `names` are the host and its parents."""
    value = await Values(connection).first(
        """
        SELECT EXISTS (
                   SELECT FROM crawl_tasks t
                    WHERE t.domain_id = d.id AND t.status = 'queued' AND t.hold IS NULL
               ) OR EXISTS (
                   SELECT FROM crawl_tasks t
                    WHERE t.domain_id = d.id AND t.status = 'pending' AND t.hold IS NULL
                      AND t.scheduled_at <= now()
               )
          FROM domains d
         CROSS JOIN task_control c
         WHERE d.domain_name = ANY(%(names)s)
           AND d.is_active AND d.task_hold IS NULL AND c.hold IS NULL
         ORDER BY array_position(%(names)s, d.domain_name)
         LIMIT 1
        """,
        {"names": list(names)},
    )
    return bool(value)


async def select_thumbnails(connection: Connection, product_ids: Sequence[int]) -> dict[int, int]:
    """The position of the first stored image of each product that has one."""
    cursor = await connection.execute(
        """
        SELECT product_id, min(position)
          FROM images
         WHERE product_id = ANY(%s) AND status = 'stored'
         GROUP BY product_id
        """,
        (list(product_ids),),
    )
    return dict(await cursor.fetchall())
