"""SQL of a generation under construction. Statements of a batch run in a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.archive.segment import ArchiveRef, ref_columns
from forager.db.database import Connection
from forager.db.rows import Made, RowArrays, Rows, Tuples, Values
from forager.documents.generation import Generation
from forager.documents.page import ManifestPage, NewPage, PageCounts, PreviousPage, SampledPage

# --- the beginning ---------------------------------------------------------------------------


class SourceRow(NamedTuple):
    """The columns of a source that the writer of a generation uses."""

    number: int
    published: int | None
    config: str | None
    repeated: dict[str, Any] | None
    markdown_way: str | None


async def upsert_source(
    connection: Connection,
    source_id: str,
    *,
    base_url: str,
    user_id: UUID | None,
    kind: str,
    payload: dict[str, Any],
) -> SourceRow:
    """Create a source or read it; locks its row. A deleted source starts from scratch."""
    return await Rows(connection, SourceRow).one(
        """
        INSERT INTO sources AS s (id, base_url, user_id, kind, payload)
        VALUES (%(id)s, %(base_url)s, %(user_id)s, %(kind)s, %(payload)s)
        ON CONFLICT (id) DO UPDATE
           SET deleted_at = NULL,
               user_id = coalesce(s.user_id, excluded.user_id),
               base_url = CASE WHEN s.deleted_at IS NULL THEN s.base_url
                               ELSE excluded.base_url END,
               kind = CASE WHEN s.deleted_at IS NULL THEN s.kind ELSE excluded.kind END,
               payload = CASE WHEN s.deleted_at IS NULL THEN s.payload
                              ELSE excluded.payload END
        RETURNING number, published_generation AS published, text_config AS config,
                  repeated_blocks AS repeated,
                  CASE WHEN markdown_way <> 'none'
                         OR markdown_checked_at > now() - interval '30 days'
                       THEN markdown_way END AS markdown_way
        """,
        {
            "id": source_id,
            "base_url": base_url,
            "user_id": user_id,
            "kind": kind,
            "payload": Jsonb(payload),
        },
    )


async def select_building(connection: Connection, job_id: UUID) -> tuple[int, int | None] | None:
    """The generation a job is building, and its base."""
    return await Tuples(connection).first(
        "SELECT id, base_id FROM generations WHERE job_id = %s AND state = 'building'", (job_id,)
    )


async def insert_generation(
    connection: Connection, source_id: str, job_id: UUID, base_id: int | None
) -> int:
    """Begin a generation with the next number of its source, and return its ID."""
    return await Values(connection, int).one(
        """
        WITH counted AS (
            UPDATE sources SET generations = generations + 1 WHERE id = %(source)s
            RETURNING generations
        )
        INSERT INTO generations (source_id, number, job_id, base_id)
        SELECT %(source)s, generations, %(job_id)s, %(base)s FROM counted
        RETURNING id
        """,
        {"source": source_id, "job_id": job_id, "base": base_id},
    )


async def select_previous(
    connection: Connection,
    generation_id: int,
    keys: Sequence[bytes],
    extractor_versions: Sequence[str],
) -> dict[bytes, PreviousPage]:
    """What the base generation knows of these URLs, by key.

    Validators are missing where another version of the extractor must read the page again.
    """
    cursor = await connection.execute(
        """
        SELECT m.url_hash, m.document_id, d.content_hash, d.extractor_version,
               CASE WHEN d.extractor_version = ANY(%(versions)s) THEN m.etag END,
               CASE WHEN d.extractor_version = ANY(%(versions)s) THEN m.last_modified END,
               m.link_set, m.fetched_at, coalesce(m.carried_times, 0),
               coalesce(extract(epoch FROM now() - m.carried_since), 0)::float8,
               m.segment, m.segment_offset, m.segment_length
          FROM generation_documents m
          JOIN documents d ON d.id = m.document_id
         WHERE m.generation_id = %(generation)s AND m.url_hash = ANY(%(keys)s)
        """,
        {"generation": generation_id, "keys": list(keys), "versions": list(extractor_versions)},
    )
    return {
        row[0]: replace(
            PreviousPage(*row[1:-3]), archive=ArchiveRef(*row[-3:]) if row[-3] else None
        )
        for row in await cursor.fetchall()
    }


async def select_links(
    connection: Connection, source_id: str, link_sets: Sequence[bytes]
) -> dict[bytes, bytes]:
    """Compressed links by the hash of their set."""
    return await Tuples(connection).as_dict(
        "SELECT hash, links FROM link_sets WHERE source_id = %s AND hash = ANY(%b)",
        (source_id, list(link_sets)),
    )


# --- a batch ---------------------------------------------------------------------------------


async def insert_link_sets(
    connection: Connection, source_id: str, link_sets: dict[bytes, bytes]
) -> None:
    """Store sets of links that are not there yet."""
    await connection.execute(
        """
        INSERT INTO link_sets (source_id, hash, links)
        SELECT %s, hash, links FROM unnest(%b::bytea[], %b::bytea[]) AS l (hash, links)
        ON CONFLICT DO NOTHING
        """,
        (source_id, list(link_sets), list(link_sets.values())),
    )


async def list_pages(
    connection: Connection, source_id: str, generation_id: int, pages: Sequence[ManifestPage]
) -> None:
    """Enter pages into a manifest whose documents are stored."""
    await connection.execute(
        f"""
        INSERT INTO generation_documents (
            generation_id, document_id, url_hash, etag, last_modified, link_set, segment,
            segment_offset, segment_length, fetched_at
        )
        SELECT %(generation)s, d.id, v.url_hash, v.etag, v.last_modified, v.link_set, v.segment,
               v.segment_offset, v.segment_length, coalesce(v.fetched_at, now())
          FROM {_LINES}
          JOIN {_STORED}
        """,
        {
            "source": source_id,
            "generation": generation_id,
            **_LINES.values(
                pages,
                url_hash="page.key",
                content_hash="page.document.content_hash",
                version="page.document.extractor_version",
                etag="page.etag",
                last_modified="page.last_modified",
                fetched_at="page.fetched_at",
                **ref_columns([page.page.archive for page in pages]),
            ),
        },
    )


_LINES = RowArrays(
    "v", url_hash="bytea", content_hash="bytea", version="text", etag="text",
    last_modified="text", link_set="bytea", segment="text", segment_offset="bigint",
    segment_length="int", fetched_at="timestamptz",
)  # fmt: skip
_VERSIONS = RowArrays("v", url_hash="bytea", content_hash="bytea", version="text")
# the documents of these versions of pages
_STORED: LiteralString = """
    documents d ON d.source_id = %(source)s
               AND d.url_hash = v.url_hash
               AND d.content_hash = v.content_hash
               AND d.extractor_version = v.version
"""


async def hold_segments(
    connection: Connection, base_id: int, keys: Sequence[bytes] | None = None
) -> None:
    """Keep the segments of copied pages from being deleted before this transaction has ended.

    Without keys, those of all pages of the generation.
    """
    of_pages: LiteralString = "" if keys is None else "AND url_hash = ANY(%(keys)s)"
    await connection.execute(
        f"""
        SELECT
          FROM archive_segments
         WHERE name IN (
            SELECT segment
              FROM generation_documents
             WHERE generation_id = %(base)s {of_pages} AND segment IS NOT NULL
         )
         ORDER BY name
           FOR KEY SHARE
        """,
        {"base": base_id, "keys": None if keys is None else list(keys)},
    )


_COPIED: LiteralString = """
    url_hash, document_id, etag, last_modified, link_set, segment, segment_offset, segment_length,
    fetched_at, carried_since, carried_reason, carried_times
"""
_UNCHANGED = RowArrays(
    "p", url_hash="bytea", etag="text", last_modified="text", fetched_at="timestamptz",
    reason="text",
)  # fmt: skip


async def copy_pages(
    connection: Connection, base_id: int, generation_id: int, pages: Sequence[NewPage]
) -> None:
    """Copy the base's lines of pages that have not changed, or that are carried over."""
    await connection.execute(
        f"""
        INSERT INTO generation_documents (generation_id, {_COPIED})
        SELECT %(generation)s, m.url_hash, m.document_id, coalesce(p.etag, m.etag),
               coalesce(p.last_modified, m.last_modified), m.link_set,
               m.segment, m.segment_offset, m.segment_length,
               CASE WHEN p.reason IS NULL THEN coalesce(p.fetched_at, now())
                    ELSE m.fetched_at END,
               CASE WHEN p.reason IS NOT NULL THEN coalesce(m.carried_since, now()) END,
               p.reason,
               CASE WHEN p.reason IS NOT NULL THEN coalesce(m.carried_times, 0) + 1 END
          FROM {_UNCHANGED}
          JOIN generation_documents m ON m.generation_id = %(base)s AND m.url_hash = p.url_hash
        """,
        {
            "generation": generation_id,
            "base": base_id,
            **_UNCHANGED.values(pages, url_hash="key", reason="carried_reason"),
        },
    )


async def copy_generation(
    connection: Connection, generation: Generation, copy_id: int, *, without: Sequence[bytes]
) -> int:
    """Copy the lines of a complete generation, but not those of some URLs; count the copies."""
    await hold_segments(connection, generation.id)
    return await Tuples(connection).affected(
        f"""
        INSERT INTO generation_documents (generation_id, {_COPIED})
        SELECT %s, {_COPIED}
          FROM generation_documents
         WHERE generation_id = %s AND url_hash <> ALL(%s)
        """,
        (copy_id, generation.id, list(without)),
    )


async def add_counts(connection: Connection, generation_id: int, counts: PageCounts) -> None:
    """Add to the numbers of pages of a generation."""
    await connection.execute(
        """
        UPDATE generations
           SET pages = pages + %(pages)s,
               added = added + %(added)s,
               changed = changed + %(changed)s,
               unchanged = unchanged + %(unchanged)s,
               carried_over = carried_over + %(carried_over)s
         WHERE id = %(id)s
        """,
        {"id": generation_id, "pages": counts.pages, **asdict(counts)},
    )


async def set_config(connection: Connection, source_id: str, config: str) -> None:
    """Settle a source's text search configuration, once."""
    await connection.execute(
        "UPDATE sources SET text_config = %s WHERE id = %s AND text_config IS NULL",
        (config, source_id),
    )


# --- pages that are read again ---------------------------------------------------------------


async def select_counts(connection: Connection, generation_id: int) -> tuple[int, int]:
    """The number of pages of a generation, and of those that differ from its base."""
    cursor = await connection.execute(
        "SELECT pages, changed FROM generations WHERE id = %s", (generation_id,)
    )
    return await cursor.fetchone() or (0, 0)


async def select_sample(
    connection: Connection, generation_id: int, limit: int
) -> list[SampledPage]:
    """Pages of a generation that is being built, as they were archived."""
    return await Made(connection, _sampled_page).all(
        """
        SELECT d.id, d.url, d.url_hash, d.content_hash,
               m.segment, m.segment_offset, m.segment_length
          FROM generation_documents m
          JOIN documents d ON d.id = m.document_id
         WHERE m.generation_id = %s AND m.carried_since IS NULL AND m.segment IS NOT NULL
         ORDER BY m.url_hash
         LIMIT %s
        """,
        (generation_id, limit),
    )


async def set_repeated(connection: Connection, source_id: str, repeated: dict[str, Any]) -> None:
    """Store the blocks that the pages of a source repeat."""
    await connection.execute(
        "UPDATE sources SET repeated_blocks = %s WHERE id = %s", (Jsonb(repeated), source_id)
    )


async def set_markdown_way(connection: Connection, source_id: str, way: str) -> None:
    """Store how the site offers markdown, and that this was checked now."""
    await connection.execute(
        "UPDATE sources SET markdown_way = %s, markdown_checked_at = now() WHERE id = %s",
        (way, source_id),
    )


async def relist_pages(
    connection: Connection, source_id: str, generation_id: int, pages: Sequence[NewPage]
) -> None:
    """Let a manifest refer to the documents that were just written for these pages."""
    await connection.execute(
        f"""
        UPDATE generation_documents m
           SET document_id = d.id
          FROM {_VERSIONS}
          JOIN {_STORED}
         WHERE m.generation_id = %(generation)s AND m.url_hash = v.url_hash
        """,
        {
            "source": source_id,
            "generation": generation_id,
            **_VERSIONS.values(
                pages,
                url_hash="key",
                content_hash="document.content_hash",
                version="document.extractor_version",
            ),
        },
    )


def _sampled_page(number: int, url: str, key: bytes, content: bytes, *place: Any) -> SampledPage:
    return SampledPage(number, url, key, content, ArchiveRef(*place))
