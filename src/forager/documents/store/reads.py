"""SQL that reads pages and sections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.db.database import Connection
from forager.db.rows import Made, Rows, Tuples, Values
from forager.documents.page import (
    ArchivedDocument,
    CarriedPage,
    DocumentRow,
    PublishedPage,
    SectionRow,
)

_COLUMNS: LiteralString = """
    d.id, d.source_id, d.url, d.path, d.title, d.language, d.content_hash, d.extractor_version,
    m.generation_id,
    (SELECT n.number FROM generations n WHERE n.id = m.generation_id) AS generation_number,
    m.fetched_at, m.carried_since, m.carried_reason, m.carried_times
"""
_DOCUMENT: LiteralString = f"""
    SELECT {_COLUMNS}
      FROM documents d
      JOIN generation_documents m ON m.document_id = d.id
"""


# a range of the index, and then the whole path
_BELOW: LiteralString = """
    AND left(d.path, 600) BETWEEN left(%(prefix)s, 600) AND left(%(prefix)s, 600) || %(last)s
    AND starts_with(d.path, %(prefix)s)
"""
LAST_CHARACTER = chr(0x10FFFF)


async def select_documents(
    connection: Connection,
    source_id: str,
    generation_id: int,
    *,
    after: tuple[str, int],
    prefix: str,
    limit: int,
) -> list[DocumentRow]:
    """Pages of one generation in the order of their paths; walks an index, and sorts nothing."""
    below: LiteralString = _BELOW if prefix else ""
    return await Rows(connection, DocumentRow).all(
        f"""
        {_DOCUMENT}
         WHERE d.source_id = %(source)s
           AND m.generation_id = %(generation)s
           AND (left(d.path, 600), d.id) > (%(after_path)s::text, %(after_id)s::bigint)
           {below}
         ORDER BY left(d.path, 600), d.id
         LIMIT %(limit)s
        """,
        {
            "source": source_id,
            "generation": generation_id,
            "after_path": after[0],
            "after_id": after[1],
            "prefix": prefix,
            "last": LAST_CHARACTER,
            "limit": limit,
        },
    )


_ARCHIVED: LiteralString = """
    SELECT s.id, d.id, d.url, m.segment, m.segment_offset, m.segment_length
      FROM sources s
      JOIN generation_documents m ON m.generation_id = s.published_generation
      JOIN documents d ON d.id = m.document_id
     WHERE s.deleted_at IS NULL
"""


async def select_archived_documents(
    connection: Connection, source_id: str, *, after: int, limit: int
) -> list[ArchivedDocument]:
    """Published pages of a source by their IDs, with the place of their responses."""
    return await Made(connection, _archived).all(
        f"{_ARCHIVED} AND s.id = %s AND d.id > %s ORDER BY d.id LIMIT %s", (source_id, after, limit)
    )


async def select_archived_page(connection: Connection, key: bytes) -> ArchivedDocument | None:
    """The page that readers find under a URL; the newest of several."""
    return await Made(connection, _archived).first(
        f"{_ARCHIVED} AND m.url_hash = %s ORDER BY m.fetched_at DESC LIMIT 1", (key,)
    )


def _archived(source_id: str, document_id: int, url: str, *ref: Any) -> ArchivedDocument:
    return ArchivedDocument(source_id, document_id, url, ArchiveRef(*ref) if ref[0] else None)


async def select_repeated(connection: Connection, source_id: str) -> dict[str, Any] | None:
    """The blocks that the pages of a source have in common, if they were learned."""
    return await Values(connection).first(
        "SELECT repeated_blocks FROM sources WHERE id = %s", (source_id,)
    )


_CARRIED: LiteralString = """
    SELECT d.url, d.title, m.fetched_at, m.carried_since AS since, m.carried_reason AS reason,
           m.carried_times AS times
      FROM documents d
      JOIN generation_documents m ON m.document_id = d.id AND m.carried_since IS NOT NULL
"""


async def select_carried_over(
    connection: Connection, generation_id: int, names: Sequence[str] = (), *, limit: int
) -> list[CarriedPage]:
    """Pages that a generation lists as they were in its base, because they failed.

    All of them, or those with one of these URLs or paths.
    """
    return await Rows(connection, CarriedPage).all(
        f"""
        {_CARRIED}
         WHERE m.generation_id = %(generation)s
           AND (%(names)s::text[] = '{{}}' OR d.url = ANY(%(names)s) OR d.path = ANY(%(names)s))
         ORDER BY d.url
         LIMIT %(limit)s
        """,
        {"generation": generation_id, "names": list(names), "limit": limit},
    )


async def select_near_duplicates(
    connection: Connection, job_id: UUID, url_hash: bytes, *, limit: int
) -> tuple[int, list[str]]:
    """Pages of a job's generation with nearly the text of this one: how many, and the first few."""
    cursor = await connection.execute(
        """
        SELECT count(*) OVER ()::int, d.url
          FROM generations g
          JOIN generation_documents m ON m.generation_id = g.id AND m.url_hash = %(key)s
          JOIN near_duplicates own
            ON own.generation_id = g.id AND own.document_id = m.document_id
          JOIN near_duplicates n
            ON n.generation_id = g.id AND n.cluster = own.cluster
           AND n.document_id <> own.document_id
          JOIN documents d ON d.id = n.document_id
         WHERE g.job_id = %(job)s
         ORDER BY n.document_id
         LIMIT %(limit)s
        """,
        {"job": job_id, "key": url_hash, "limit": limit},
    )
    rows = await cursor.fetchall()
    return (rows[0][0] if rows else 0), [url for _, url in rows]


async def select_near_clusters(
    connection: Connection, source_id: str, *, limit: int
) -> tuple[int, int, list[tuple[int, str, str]]]:
    """Clusters of nearly the same pages of a published generation: clusters and pages in all, and
    of the largest the number of pages, the first and the last URL.
    """
    cursor = await connection.execute(
        """
        SELECT count(*) OVER ()::int, sum(count(*)) OVER ()::int, count(*)::int,
               min(d.url), max(d.url)
          FROM sources s
          JOIN near_duplicates n ON n.generation_id = s.published_generation
          JOIN documents d ON d.id = n.document_id
         WHERE s.id = %(source)s
         GROUP BY n.cluster
         ORDER BY 3 DESC, n.cluster
         LIMIT %(limit)s
        """,
        {"source": source_id, "limit": limit},
    )
    rows = await cursor.fetchall()
    clusters, pages = rows[0][:2] if rows else (0, 0)
    return clusters, pages, [row[2:] for row in rows]


async def select_carried_page(
    connection: Connection, job_id: UUID, url_hash: bytes
) -> CarriedPage | None:
    """A page that a job has carried over into its generation."""
    return await Rows(connection, CarriedPage).first(
        f"""
        {_CARRIED}
          JOIN generations g ON g.id = m.generation_id
         WHERE g.job_id = %s AND m.url_hash = %s
         ORDER BY g.number DESC
         LIMIT 1
        """,
        (job_id, url_hash),
    )


# sources of a reader: one or all, of one owner or of all
# a name stands for all versions of its source
_IS_SEARCHED: LiteralString = """
    s.deleted_at IS NULL
    AND (%(source)s::text IS NULL OR s.id = %(source)s
         OR starts_with(s.id, %(source)s || '@'))
    AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
"""


async def select_published_documents(
    connection: Connection, url_hash: bytes, source_id: str | None, user_id: UUID | None
) -> list[DocumentRow]:
    """A URL in every source that has it published; a few rows at most."""
    return await Rows(connection, DocumentRow).all(
        f"""
        SELECT {_COLUMNS}
          FROM sources s
          JOIN generation_documents m
            ON m.generation_id = s.published_generation AND m.url_hash = %(url_hash)s
          JOIN documents d ON d.id = m.document_id
         WHERE {_IS_SEARCHED}
         ORDER BY m.fetched_at DESC
         LIMIT 100
        """,
        {"url_hash": url_hash, "source": source_id, "user_id": user_id},
    )


async def select_published_page(
    connection: Connection, url_hash: bytes, source_id: str | None, user_id: UUID | None
) -> PublishedPage | None:
    """A URL in the published generation of a source, and since when readers see this version."""
    return await Rows(connection, PublishedPage).first(
        f"""
        SELECT s.id AS source_id, g.number AS generation, m.carried_reason,
               (SELECT min(e.published_at)
                  FROM generation_documents same
                  JOIN generations e ON e.id = same.generation_id
                 WHERE same.document_id = m.document_id
                   AND e.published_at <= g.published_at
                   -- no generation without this version was published after it
                   AND NOT EXISTS (
                        SELECT FROM generations o
                         WHERE o.source_id = s.id
                           AND o.published_at BETWEEN e.published_at AND g.published_at
                           AND NOT EXISTS (
                                SELECT FROM generation_documents other
                                 WHERE other.generation_id = o.id
                                   AND other.document_id = m.document_id))) AS since
          FROM sources s
          JOIN generations g ON g.id = s.published_generation
          JOIN generation_documents m ON m.generation_id = g.id AND m.url_hash = %(url_hash)s
         WHERE {_IS_SEARCHED}
         ORDER BY m.fetched_at DESC
         LIMIT 1
        """,
        {"url_hash": url_hash, "source": source_id, "user_id": user_id},
    )


async def generation_lists(connection: Connection, generation_id: int, url_hash: bytes) -> bool:
    """Whether a generation has a page for this URL."""
    return await Tuples(connection).exists(
        "SELECT FROM generation_documents WHERE generation_id = %s AND url_hash = %s",
        (generation_id, url_hash),
    )


async def select_document_of_generation(
    connection: Connection, url_hash: bytes, source_id: str, number: int, user_id: UUID | None
) -> DocumentRow | None:
    """A URL in one complete generation of a source."""
    return await Rows(connection, DocumentRow).first(
        f"""
        {_DOCUMENT}
          JOIN generations g ON g.id = m.generation_id
          JOIN sources s ON s.id = g.source_id
         WHERE g.number = %(number)s AND g.state IN ('published', 'retired')
           AND m.url_hash = %(url_hash)s AND {_IS_SEARCHED}
        """,
        {"url_hash": url_hash, "source": source_id, "number": number, "user_id": user_id},
    )


async def select_versions(
    connection: Connection, source_id: str, url_hash: bytes, *, limit: int
) -> list[tuple[int, bytes, datetime]]:
    """The complete generations that list a URL, newest first: number, content and fetch time."""
    return await Tuples(connection).all(
        """
        SELECT g.number, d.content_hash, m.fetched_at
          FROM documents d
          JOIN generation_documents m ON m.document_id = d.id
          JOIN generations g ON g.id = m.generation_id
         WHERE d.source_id = %s AND d.url_hash = %s AND g.state IN ('published', 'retired')
         ORDER BY g.number DESC
         LIMIT %s
        """,
        (source_id, url_hash, limit),
    )


async def select_response_ref(
    connection: Connection, generation_id: int, url_hash: bytes
) -> ArchiveRef | None:
    """The place of the archived response of a page."""
    return await Made(connection, ArchiveRef).first(
        """
        SELECT segment, segment_offset, segment_length
          FROM generation_documents
         WHERE generation_id = %s AND url_hash = %s AND segment IS NOT NULL
        """,
        (generation_id, url_hash),
    )


async def select_page_repeated(
    connection: Connection, url_hash: bytes, source_id: str | None, user_id: UUID | None
) -> str | None:
    """The page that a URL repeats, by the crawl of a published generation."""
    return await Values(connection).first(
        f"""
        SELECT v.duplicate_of
          FROM sources s
          JOIN generations g ON g.id = s.published_generation
          JOIN crawl_visited v ON v.job_id = g.job_id AND v.url_hash = %(url_hash)s
         WHERE v.outcome = 'duplicate' AND {_IS_SEARCHED}
         ORDER BY v.settled_at DESC
         LIMIT 1
        """,
        {"url_hash": url_hash, "source": source_id, "user_id": user_id},
    )


async def select_sections(
    connection: Connection, document_ids: Sequence[int]
) -> dict[int, list[SectionRow]]:
    """The sections of documents in the order of the page."""
    cursor = await connection.execute(
        """
        SELECT document_id, id, parent_id, heading, level, anchor, content, position,
               coalesce(string_to_array(anchors, E'\\n'), '{}')
          FROM sections
         WHERE document_id = ANY(%s)
         ORDER BY document_id, position
        """,
        (list(document_ids),),
    )
    sections: dict[int, list[SectionRow]] = {}
    async for row in cursor:
        sections.setdefault(row[0], []).append(SectionRow(*row[1:]))
    return sections
