"""SQL of publishing: what readers see is one pointer, and it moves by compare-and-set."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.documents.gate import Effort, GateLimits


async def lock_source(
    connection: Connection, source_id: str
) -> tuple[int | None, GateLimits] | None:
    """Lock a source's row until the end of the transaction; its published generation and gate."""
    cursor = await connection.execute(
        """
        SELECT published_generation, max_shrink, max_failed
          FROM sources
         WHERE id = %s AND deleted_at IS NULL
           FOR NO KEY UPDATE
        """,
        (source_id,),
    )
    row = await cursor.fetchone()
    return None if row is None else (row[0], GateLimits(row[1], row[2]))


async def set_limits(
    connection: Connection,
    source_id: str,
    *,
    keep: int | None,
    max_shrink: float | None,
    max_failed: float | None,
) -> None:
    """Set those of a source's limits that are given."""
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


async def select_effort(connection: Connection, job_id: UUID) -> Effort:
    """What a job tried and how it failed, by its ledger."""
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
    return Effort() if row is None else Effort(*row)


async def count_pages(connection: Connection, generation_id: int | None) -> int:
    cursor = await connection.execute(
        "SELECT pages FROM generations WHERE id = %s", (generation_id,)
    )
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


async def point_at(
    connection: Connection, source_id: str, generation_id: int, expected: int | None
) -> bool:
    """Let readers see a generation, if they see the expected one now."""
    cursor = await connection.execute(
        """
        UPDATE sources
           SET published_generation = %(generation)s, updated_at = now()
         WHERE id = %(source)s AND published_generation IS NOT DISTINCT FROM %(expected)s
        """,
        {"source": source_id, "generation": generation_id, "expected": expected},
    )
    return cursor.rowcount > 0


async def retire_published(connection: Connection, source_id: str) -> None:
    await connection.execute(
        """
        UPDATE generations
           SET state = 'retired', retired_at = now()
         WHERE source_id = %s AND state = 'published'
        """,
        (source_id,),
    )


async def mark_published(connection: Connection, generation_id: int) -> bool:
    """False if it was abandoned at this moment: its pages are being deleted."""
    cursor = await connection.execute(
        """
        UPDATE generations
           SET state = 'published', published_at = now(), retired_at = NULL, note = NULL
         WHERE id = %s AND state <> 'abandoned'
        """,
        (generation_id,),
    )
    return cursor.rowcount > 0


async def mark_refused(connection: Connection, generation_id: int, note: str) -> None:
    await connection.execute(
        "UPDATE generations SET state = 'retired', retired_at = now(), note = %s WHERE id = %s",
        (note, generation_id),
    )


async def count_removed(connection: Connection, generation_id: int) -> None:
    """Pages of the base that were not found again; their number follows from the others."""
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
    connection: Connection, source_id: str, kind: str, payload: dict[str, Any]
) -> None:
    """What a refresh does from now on: the same as the job that was published."""
    await connection.execute(
        "UPDATE sources SET kind = %s, payload = %s WHERE id = %s",
        (kind, Jsonb(payload), source_id),
    )
