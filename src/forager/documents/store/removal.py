"""SQL of removal: unneeded generations in chunks, and what only they refer to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString, get_args
from uuid import UUID

from forager.db.database import Connection
from forager.db.rows import Tuples, Values
from forager.documents.store.words import Derived, delete_derived
from forager.index.store import enqueue_changes

# Jobs that may write to a generation of the source: running or about to pause.
_IS_RUNNING: LiteralString = """
    EXISTS (
        SELECT FROM crawl_jobs j
         WHERE j.source_id = %(source)s
           AND (j.status = 'processing' OR j.status = 'paused' AND j.worker_id IS NOT NULL)
    )
"""


async def hide_source(connection: Connection, source_id: str) -> None:
    """Hide a source from readers and from the scheduler at once; its rows are deleted later."""
    await connection.execute(
        """
        UPDATE sources
           SET published_generation = NULL, refresh_every = NULL, refresh_cron = NULL,
               next_refresh_at = NULL, deleted_at = now()
         WHERE id = %s
        """,
        (source_id,),
    )


async def abandon_all(connection: Connection, source_id: str) -> None:
    """Abandon all generations of a deleted source."""
    await connection.execute(
        """
        UPDATE generations
           SET state = 'abandoned', retired_at = now(), note = 'its source was deleted'
         WHERE source_id = %s AND state <> 'abandoned'
        """,
        (source_id,),
    )


# --- generations that were never completed -----------------------------------------------------

_LEFT_BEHIND: LiteralString = """
    j.id IS NULL
    OR j.status IN ('cancelled', 'completed')
    OR j.status = 'failed' AND (
        j.completed_at < now() - %(retry_window)s * interval '1 second'
        -- the source went on without it: what it was built on is not published any more
        OR g.base_id IS DISTINCT FROM (
            SELECT published_generation FROM sources WHERE id = g.source_id
        )
    )
"""


async def abandon_building(connection: Connection, job_id: UUID) -> None:
    """Abandon the generation that a job has begun: the job starts again."""
    await connection.execute(
        """
        UPDATE generations
           SET state = 'abandoned', retired_at = now(), note = 'its job started again'
         WHERE job_id = %s AND state = 'building'
        """,
        (job_id,),
    )


async def select_left_behind(connection: Connection, retry_window: float) -> list[tuple[int, UUID]]:
    """Generations whose job has ended without completing them, with the job."""
    return await Tuples(connection).all(
        f"""
        SELECT g.id, g.job_id
          FROM generations g
          LEFT JOIN crawl_jobs j ON j.id = g.job_id
         WHERE g.state = 'building' AND ({_LEFT_BEHIND})
         ORDER BY g.id
         LIMIT 1000
        """,
        {"retry_window": retry_window},
    )


async def lock_job(connection: Connection, job_id: UUID) -> None:
    """Keep a job from being retried until the end of the transaction; it may be gone."""
    await connection.execute("SELECT FROM crawl_jobs WHERE id = %s FOR UPDATE", (job_id,))


async def abandon_left_behind(
    connection: Connection, generation_id: int, retry_window: float
) -> bool:
    """Abandon a generation if its job, which is locked, is still not coming back to it."""
    return await Tuples(connection).changed(
        f"""
        UPDATE generations
           SET state = 'abandoned', retired_at = now(), note = 'its job ended'
         WHERE id = (
            SELECT g.id
              FROM generations g
              LEFT JOIN crawl_jobs j ON j.id = g.job_id
             WHERE g.id = %(id)s AND g.state = 'building' AND ({_LEFT_BEHIND})
         )
        """,
        {"id": generation_id, "retry_window": retry_window},
    )


async def forget_failed_crawl(connection: Connection, job_id: UUID) -> None:
    """A failed job without its generation starts from scratch when it is retried."""
    for table in ("crawl_frontier", "crawl_visited", "crawl_states"):
        await connection.execute(
            f"""
            DELETE FROM {table}
             WHERE job_id = (SELECT id FROM crawl_jobs WHERE id = %s AND status = 'failed')
            """,
            (job_id,),
        )


# --- generations that are too old --------------------------------------------------------------


async def cleanup_old_generations(connection: Connection, grace: float) -> int:
    """Abandon generations past a source's limit that are retired long enough and no base."""
    return await Tuples(connection).affected(
        """
        WITH aged AS (
            SELECT g.id, g.source_id,
                   row_number() OVER (PARTITION BY g.source_id ORDER BY g.number DESC) AS age
              FROM generations g
             WHERE g.state IN ('published', 'retired')
        )
        UPDATE generations g
           SET state = 'abandoned', note = 'too old'
          FROM aged a
          JOIN sources s ON s.id = a.source_id
         WHERE g.id = a.id
           AND a.age > s.keep_generations
           AND g.state = 'retired'
           AND g.retired_at < now() - %s * interval '1 second'
           AND s.published_generation IS DISTINCT FROM g.id
           AND NOT EXISTS (
               SELECT FROM generations b WHERE b.base_id = g.id AND b.state = 'building'
           )
        """,
        (grace,),
    )


# --- deleting ----------------------------------------------------------------------------------


async def select_abandoned(connection: Connection, source_id: str | None) -> list[tuple[int, str]]:
    """Generations to delete, each with its source."""
    of_source: LiteralString = "AND source_id = %(source)s" if source_id is not None else ""
    return await Tuples(connection).all(
        f"""
        SELECT id, source_id
          FROM generations
         WHERE state = 'abandoned' {of_source}
         ORDER BY id
         LIMIT 1000
        """,
        {"source": source_id},
    )


async def lock_idle_source(connection: Connection, source_id: str) -> bool:
    """Lock a source's row if no job of it is running; one that starts waits for this lock."""
    await connection.execute("SELECT FROM sources WHERE id = %s FOR UPDATE", (source_id,))
    # a separate statement: it must see what was committed while the lock was waited for
    value = await Values(connection).first(f"SELECT NOT {_IS_RUNNING}", {"source": source_id})
    return bool(value)


async def delete_lines(
    connection: Connection, generation_id: int, limit: int
) -> list[tuple[int, bytes | None]]:
    """Delete a part of a manifest; which documents and link sets it referred to."""
    return await Tuples(connection).all(
        """
        DELETE FROM generation_documents
         WHERE generation_id = %(id)s
           AND url_hash IN (
               SELECT url_hash
                 FROM generation_documents
                WHERE generation_id = %(id)s
                LIMIT %(limit)s
           )
        RETURNING document_id, link_set
        """,
        {"id": generation_id, "limit": limit},
    )


async def delete_unused_documents(connection: Connection, ids: Sequence[int]) -> list[int]:
    """Delete those of the documents that no manifest refers to any more."""
    return await Values(connection).all(
        """
        DELETE FROM documents d
         WHERE d.id = ANY(%s)
           AND NOT EXISTS (SELECT FROM generation_documents m WHERE m.document_id = d.id)
        RETURNING d.id
        """,
        (list(ids),),
    )


async def delete_sections(connection: Connection, document_ids: Sequence[int]) -> None:
    """Delete the sections of documents, and tell the search index in the same transaction."""
    ids = list(document_ids)
    counts: LiteralString = """
        SELECT document_id, max(position) + 1
          FROM section_search
         WHERE document_id = ANY(%s)
         GROUP BY document_id
    """
    await connection.execute(enqueue_changes("sections", counts), (ids,))
    await connection.execute("DELETE FROM section_search WHERE document_id = ANY(%s)", (ids,))
    await connection.execute("DELETE FROM sections WHERE document_id = ANY(%s)", (ids,))


async def delete_unused_link_sets(
    connection: Connection, source_id: str, hashes: Sequence[bytes]
) -> None:
    """Delete those of the link sets that no generation uses."""
    await connection.execute(
        """
        DELETE FROM link_sets l
         WHERE l.source_id = %(source)s
           AND l.hash = ANY(%(hashes)s)
           AND NOT EXISTS (
               SELECT FROM generation_documents m
                 JOIN generations g ON g.id = m.generation_id
                WHERE m.link_set = l.hash AND g.source_id = %(source)s
           )
        """,
        {"source": source_id, "hashes": list(hashes)},
    )


async def delete_generation(connection: Connection, generation_id: int) -> None:
    """Delete an abandoned generation, with everything that was derived from it."""
    for table in get_args(Derived):
        await delete_derived(connection, generation_id, table)
    await connection.execute(
        "DELETE FROM generations WHERE id = %s AND state = 'abandoned'", (generation_id,)
    )


_IS_EMPTY: LiteralString = """
    NOT EXISTS (SELECT FROM generations g WHERE g.source_id = s.id)
    AND (s.deleted_at IS NOT NULL
         OR s.published_generation IS NULL AND s.next_refresh_at IS NULL
            AND NOT EXISTS (SELECT FROM crawl_jobs j
                             WHERE j.source_id = s.id
                               AND j.status IN ('pending', 'processing', 'paused', 'failed')))
"""


async def select_empty_sources(connection: Connection) -> list[str]:
    """Sources that were deleted, or never had a page, and whose generations are gone."""
    return await Values(connection).all(f"SELECT s.id FROM sources s WHERE {_IS_EMPTY} LIMIT 1000")


async def delete_empty_source(connection: Connection, source_id: str) -> bool:
    """Delete a source that is locked, if it is still empty."""
    return await Tuples(connection).changed(
        f"DELETE FROM sources s WHERE s.id = %s AND {_IS_EMPTY}", (source_id,)
    )


# --- the search index --------------------------------------------------------------------------


async def flush_pending_lists(connection: Connection) -> None:
    """Move new entries into the search indexes, so that no crawl's commit has to."""
    for index in ("section_search_head_idx", "section_search_idx"):
        await connection.execute("SELECT gin_clean_pending_list(%s::regclass)", (index,))
