"""SQL of images: listing, fetching and showing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Made, RowArrays, Rows, Tuples, Values
from forager.fetch.domains.store import HAS_PROXY, IN_REGION


@dataclass(frozen=True, slots=True)
class ShownImage:
    """An image that a product page shows."""

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
    """Replace the images of products; known ones keep their state."""
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
    """Fetch images of products again that were settled this long ago.

    The stored file is shown until it is replaced.
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
    """An image to fetch, with the terms of its domain."""

    id: int
    url: str
    url_hash: bytes
    attempts: int
    domain: str
    use_proxies: bool | None
    allow_private: bool
    waited: float


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that was downloaded and inspected."""

    content_hash: bytes
    path: str
    media_type: str
    width: int
    height: int
    file_size: int


@dataclass(frozen=True, slots=True)
class FileKey:
    """The row of a file; one that was deleted and created again has another time."""

    content_hash: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file that is stored already, and when it was fetched."""

    key: FileKey
    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """A position in the order of due images."""

    at: datetime
    id: int


START = ImagePlace(datetime.min.replace(tzinfo=UTC), 0)


async def select_place(
    connection: Connection, *, after: ImagePlace, count: int
) -> ImagePlace | None:
    """The position of the due image `count` places further; None if there are fewer."""
    return await Rows(connection, ImagePlace).first(
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
    after: ImagePlace = START,
    until: ImagePlace | None = None,
) -> list[PendingImage]:
    """Claim due images for a worker of this region, for the time of the lease.

    `after` and `until` limit the range that is searched.
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
               -- a subquery per row, so that no plan reads all products for a few images
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
    """By URL and domain: the file that was fetched recently, on the terms of that domain.

    The terms of another domain may not allow the same URL.
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
    """Insert the row of a file, or extend the known one; None if it is being deleted."""
    return await Made(connection, FileKey).first(
        """
        INSERT INTO image_files AS f
               (content_hash, path, media_type, width, height, file_size)
        VALUES (%s, %s, %s, %s, %s, %s)
            ON CONFLICT (content_hash) DO UPDATE SET touched_at = now()
         WHERE f.going_at IS NULL
        RETURNING f.content_hash, f.created_at
        """,
        (file.content_hash, file.path, file.media_type, file.width, file.height, file.file_size),
    )


async def refer(
    connection: Connection,
    image_ids: Sequence[int],
    key: FileKey,
    *,
    fetched_at: datetime | None = None,
) -> int:
    """Assign a file to images, unless it was deleted meanwhile; returns how many have it.

    `fetched_at`: of a file that is reused. The row of the file is locked against its deletion,
    which checks for references afterwards.
    """
    return await Tuples(connection).affected(
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
               -- a reused file keeps its time, so that it is fetched again some day
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


async def settle_image(
    connection: Connection, image_ids: Sequence[int], *, status: str, problem: str
) -> None:
    """Store that images were refused or have failed; images with a file keep it."""
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
    """Retry later; `spent`: the number of attempts that this counts as."""
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
    """Where the file of an image is."""

    path: str
    media_type: str
    content_hash: bytes


async def select_stored(
    connection: Connection, product_id: int, position: int
) -> StoredImage | None:
    """The stored image at a position of a product; None if none is stored there."""
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
    """Whether tasks are due; `names`: the host and its parent domains."""
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
    """The position of the first stored image of each product."""
    return await Tuples(connection).as_dict(
        """
        SELECT product_id, min(position)
          FROM images
         WHERE product_id = ANY(%s) AND status = 'stored'
         GROUP BY product_id
        """,
        (list(product_ids),),
    )
