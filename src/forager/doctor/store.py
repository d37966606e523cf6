"""State of the PostgreSQL server. SQL only."""

from __future__ import annotations

from forager.db.database import Connection
from forager.db.rows import Tuples, Values


async def select_connections(connection: Connection) -> tuple[int, int]:
    """Connections in use, and their limit."""
    cursor = await connection.execute(
        """
        SELECT (SELECT count(*)::int FROM pg_stat_activity
                 WHERE backend_type = 'client backend') AS used,
               (current_setting('max_connections')::int
                - current_setting('superuser_reserved_connections')::int) AS limit
        """
    )
    row = await cursor.fetchone()
    assert row is not None
    return row


async def select_autovacuum(connection: Connection) -> bool:
    """Whether the server vacuums tables by itself."""
    return await Values(connection, bool).one(
        """
        SELECT current_setting('autovacuum')::boolean
           AND current_setting('track_counts')::boolean
        """
    )


async def select_bloated_tables(
    connection: Connection, *, dead: int, share: float
) -> list[tuple[str, int, int]]:
    """Tables with many dead rows, the worst first: name, live rows, dead rows."""
    return await Tuples(connection).all(
        """
        SELECT relname AS name, n_live_tup AS live, n_dead_tup AS dead
          FROM pg_stat_user_tables
         WHERE n_dead_tup > %s AND n_dead_tup > %s * n_live_tup
         ORDER BY n_dead_tup DESC
        """,
        (dead, share),
    )


async def select_open_transaction(connection: Connection) -> tuple[str, float] | None:
    """The session with the oldest other transaction in this database, and its seconds."""
    cursor = await connection.execute(
        """
        SELECT coalesce(nullif(application_name, ''), 'unknown') || ', pid ' || pid AS who,
               extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
          FROM pg_stat_activity
         WHERE datname = current_database() AND xact_start IS NOT NULL
           AND backend_type = 'client backend' AND pid <> pg_backend_pid()
         ORDER BY xact_start LIMIT 1
        """
    )
    return await cursor.fetchone()
