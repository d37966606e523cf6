"""Statements that break a promise; only `broken` uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from forager.db.database import Connection
from forager.jobs.job import Lease


async def hold_nothing(connection: Connection, lease: Lease) -> AsyncCursor[TupleRow]:
    """Return what the lease check returns, without checking the lease."""
    return await connection.execute("SELECT status FROM crawl_jobs WHERE id = %s", (lease.job_id,))


async def insert_events_alone(
    connection: Connection, events: Sequence[Any], *, payloads: list[str]
) -> None:
    """Insert events without messages to webhooks."""
    await connection.execute(
        """
        INSERT INTO catalog_events (kind, product_id, domain_id, payload)
        SELECT * FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::jsonb[])
        """,
        (
            [event.kind.value for event in events],
            [event.product_id for event in events],
            [event.domain_id for event in events],
            payloads,
        ),
    )
