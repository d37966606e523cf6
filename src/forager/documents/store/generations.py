"""SQL that reads sources and generations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples
from forager.documents.generation import Generation, Source

_GENERATION: LiteralString = """
    SELECT g.id, g.source_id, g.number, g.state, g.job_id, g.base_id, b.number AS base_number,
           g.pages, g.added, g.changed, g.removed, g.unchanged, g.carried_over, g.created_at,
           g.published_at, g.retired_at, g.note
      FROM generations g
      LEFT JOIN generations b ON b.id = g.base_id
"""


_SOURCE: LiteralString = """
    SELECT s.id, s.number, s.base_url, s.user_id, s.published_generation,
           g.number AS published_number, coalesce(g.pages, 0) AS pages, g.published_at,
           h.number AS held_back_number, h.note AS held_back_note,
           (SELECT max(e.number) FROM generations e
             WHERE e.source_id = s.id AND e.state = 'retired' AND e.published_at IS NOT NULL
               AND e.number < g.number) AS earlier_number,
           s.generations, s.text_config, s.keep_generations, s.max_shrink, s.max_failed,
           s.kind, s.payload, s.refresh_every, s.refresh_cron, s.next_refresh_at,
           s.created_at, s.updated_at,
           a.id AS active_job, a.status AS active_status
      FROM sources s
      LEFT JOIN crawl_jobs a
        ON a.source_id = s.id AND a.status IN ('pending', 'processing', 'paused')
      LEFT JOIN generations g ON g.id = s.published_generation
      LEFT JOIN LATERAL (
            SELECT n.number, n.note, n.published_at FROM generations n
             WHERE n.source_id = s.id AND n.state IN ('published', 'retired')
             ORDER BY n.number DESC
             LIMIT 1
      ) h ON h.published_at IS NULL
     WHERE s.deleted_at IS NULL
"""


async def select_sources(
    connection: Connection, *, after: str, user_id: UUID | None, limit: int
) -> list[Source]:
    """Sources by name, without those of which no page was fetched and no crawl is active."""
    of_user: LiteralString = "AND s.user_id = %(user_id)s" if user_id else ""
    return await Rows(connection, Source).all(
        f"""
        {_SOURCE}
           AND s.id > %(after)s {of_user}
           AND (EXISTS (SELECT FROM generations g
                         WHERE g.source_id = s.id AND g.state <> 'abandoned' AND g.pages > 0)
                OR EXISTS (SELECT FROM crawl_jobs j
                            WHERE j.source_id = s.id
                              AND j.status IN ('pending', 'processing', 'paused'))
                OR s.next_refresh_at IS NOT NULL)
         ORDER BY s.id
         LIMIT %(limit)s
        """,
        {"after": after, "user_id": user_id, "limit": limit},
    )


async def select_source(connection: Connection, source_id: str) -> Source | None:
    """A source by its exact name; None for an unknown or deleted one."""
    return await Rows(connection, Source).first(f"{_SOURCE} AND s.id = %s", (source_id,))


async def select_sources_named(connection: Connection, name: str) -> list[Source]:
    """The source of this name and its versions (`flask@2.2` of `flask`), by name."""
    return await Rows(connection, Source).all(
        f"{_SOURCE} AND (s.id = %(name)s OR starts_with(s.id, %(name)s || '@')) ORDER BY s.id",
        {"name": name},
    )


async def select_sources_by_id(connection: Connection, source_ids: Sequence[str]) -> list[Source]:
    """Those of the sources that exist."""
    return await Rows(connection, Source).all(f"{_SOURCE} AND s.id = ANY(%s)", (list(source_ids),))


async def select_source_names(connection: Connection, user_id: UUID | None) -> list[str]:
    """Names of all sources with a published generation; with an owner, only that owner's."""
    cursor = await connection.execute(
        """
        SELECT id FROM sources
         WHERE published_generation IS NOT NULL AND deleted_at IS NULL
           AND (%(user_id)s::uuid IS NULL OR user_id = %(user_id)s)
        """,
        {"user_id": user_id},
    )
    return [row[0] for row in await cursor.fetchall()]


async def select_first_pages(
    connection: Connection, source_ids: Sequence[str], length: int
) -> list[tuple[str, str | None, str | None]]:
    """Source, title and beginning of the text of the first page of each, by path."""
    cursor = await connection.execute(
        """
        SELECT s.id, d.title,
               (SELECT left(t.content, %(length)s) FROM sections t
                 WHERE t.document_id = d.id AND t.content <> ''
                 ORDER BY t.position LIMIT 1)
          FROM sources s
          CROSS JOIN LATERAL (
               SELECT d.id, d.title
                 FROM documents d
                 JOIN generation_documents m ON m.document_id = d.id
                WHERE d.source_id = s.id AND m.generation_id = s.published_generation
                ORDER BY left(d.path, 600), d.id
                LIMIT 1) d
         WHERE s.id = ANY(%(sources)s)
        """,
        {"sources": list(source_ids), "length": length},
    )
    return [tuple(row) for row in await cursor.fetchall()]


async def select_generations(
    connection: Connection, source_id: str, *, before: int | None, limit: int
) -> list[Generation]:
    """Generations, newest first."""
    older: LiteralString = "AND g.number < %(before)s" if before is not None else ""
    return await Rows(connection, Generation).all(
        f"""
        {_GENERATION}
         WHERE g.source_id = %(source)s {older}
         ORDER BY g.number DESC
         LIMIT %(limit)s
        """,
        {"source": source_id, "before": before, "limit": limit},
    )


async def select_held_back(
    connection: Connection, *, user_id: UUID | None, limit: int, source_id: str | None = None
) -> list[Generation]:
    """The newest complete generations of their sources that are held back; newest first.

    A source stands for its versions too: `docs` for `docs@2`.
    """
    of_user: LiteralString = "AND s.user_id = %(user_id)s" if user_id else ""
    of_source: LiteralString = (
        "AND (s.id = %(source)s OR starts_with(s.id, %(source)s || '@'))" if source_id else ""
    )
    return await Rows(connection, Generation).all(
        f"""
        {_GENERATION}
          JOIN sources s ON s.id = g.source_id
         WHERE g.state = 'retired' AND g.published_at IS NULL AND s.deleted_at IS NULL
           {of_user} {of_source}
           AND NOT EXISTS (
                SELECT FROM generations newer
                 WHERE newer.source_id = g.source_id AND newer.number > g.number
                   AND newer.state IN ('published', 'retired')
           )
         ORDER BY g.id DESC
         LIMIT %(limit)s
        """,
        {"user_id": user_id, "limit": limit, "source": source_id},
    )


async def select_held_back_with(
    connection: Connection, url_hash: bytes, source_id: str | None, user_id: UUID | None
) -> Generation | None:
    """The newest generation that is held back and lists a URL."""
    return await Rows(connection, Generation).first(
        f"""
        {_GENERATION}
          JOIN sources s ON s.id = g.source_id
          JOIN generation_documents m ON m.generation_id = g.id AND m.url_hash = %(url_hash)s
         WHERE g.state = 'retired' AND g.published_at IS NULL AND s.deleted_at IS NULL
           AND (%(source)s::text IS NULL OR s.id = %(source)s
                OR starts_with(s.id, %(source)s || '@'))
           AND (%(user_id)s::uuid IS NULL OR s.user_id = %(user_id)s)
         ORDER BY g.id DESC
         LIMIT 1
        """,
        {"url_hash": url_hash, "source": source_id, "user_id": user_id},
    )


async def select_generation_by_id(connection: Connection, generation_id: int) -> Generation | None:
    """A generation that is not abandoned."""
    return await Rows(connection, Generation).first(
        f"{_GENERATION} WHERE g.id = %s AND g.state <> 'abandoned'", (generation_id,)
    )


async def select_generation(
    connection: Connection, source_id: str, number: int
) -> Generation | None:
    """A generation of a source by its number."""
    return await Rows(connection, Generation).first(
        f"{_GENERATION} WHERE g.source_id = %s AND g.number = %s", (source_id, number)
    )


async def select_generations_of_jobs(
    connection: Connection, job_ids: Sequence[UUID]
) -> dict[UUID, Generation]:
    """The newest that each job has built or is building; jobs without documents are left out."""
    found = await Rows(connection, Generation).all(
        f"{_GENERATION} WHERE g.job_id = ANY(%s) AND g.state <> 'abandoned' ORDER BY g.number",
        (list(job_ids),),
    )
    return {each.job_id: each for each in found if each.job_id is not None}


async def select_newest_complete(connection: Connection, source_id: str) -> Generation | None:
    """The newest generation that was complete, published or not."""
    return await Rows(connection, Generation).first(
        f"""
        {_GENERATION}
         WHERE g.source_id = %s AND g.state IN ('published', 'retired')
         ORDER BY g.number DESC
         LIMIT 1
        """,
        (source_id,),
    )


async def select_published_before(connection: Connection, source_id: str) -> Generation | None:
    """The generation that readers saw before the one they see."""
    return await Rows(connection, Generation).first(
        f"""
        {_GENERATION}
         WHERE g.source_id = %(source)s
           AND g.state = 'retired'
           AND g.published_at IS NOT NULL
           AND g.number < (
               SELECT number FROM generations
                WHERE source_id = %(source)s AND state = 'published'
           )
         ORDER BY g.number DESC
         LIMIT 1
        """,
        {"source": source_id},
    )


async def generation_is_readable(connection: Connection, generation_id: int) -> bool:
    """Whether readers may see a generation."""
    return await Tuples(connection).exists(
        "SELECT FROM generations WHERE id = %s AND state IN ('published', 'retired')",
        (generation_id,),
    )
