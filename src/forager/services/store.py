"""SQL of service processes: which processes run background services, and how these are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.db.database import Connection
from forager.db.rows import Rows
from forager.services.status import ProcessIdentity, ServiceProcess

# how long a process that ended without deleting its row stays in the list
KEPT_FOR = 86_400.0


async def upsert_process(
    connection: Connection, identity: ProcessIdentity, services: list[Any]
) -> None:
    """Write the row of a process; delete those of processes that ended without deleting theirs."""
    await connection.execute(
        """
        WITH old AS (
            DELETE FROM service_processes
             WHERE last_seen < now() - make_interval(secs => %(kept_for)s) AND id <> %(id)s
        )
        INSERT INTO service_processes (id, command, host, pid, process, services)
        VALUES (%(id)s, %(command)s, %(host)s, %(pid)s, %(process)s, %(services)s)
            ON CONFLICT (id) DO UPDATE SET last_seen = now(), services = excluded.services
        """,
        {**asdict(identity), "services": Jsonb(services), "kept_for": KEPT_FOR},
    )


async def delete_process(connection: Connection, process_id: UUID) -> None:
    """Forget a process that ran background services."""
    await connection.execute("DELETE FROM service_processes WHERE id = %s", (process_id,))


async def select_processes(connection: Connection, *, stale_after: float) -> list[ServiceProcess]:
    """The processes, with their services as they wrote them: not parsed."""
    return await Rows(connection, ServiceProcess).all(
        """
        SELECT id, command, host, pid, process, started_at, last_seen, services,
               last_seen < now() - make_interval(secs => %s) AS is_gone
          FROM service_processes
         ORDER BY started_at, id
        """,
        (stale_after,),
    )
