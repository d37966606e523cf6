"""The SQL of growing old: what is kept of tasks by age goes in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class Ageing:
    """A table, and the column that says how old a row is; rows without a time stay."""

    table: LiteralString
    time: LiteralString


AGEING = (
    Ageing("task_attempts", "finished_at"),
    Ageing("error_logs", "occurred_at"),
    Ageing("extractions", "created_at"),
    # the open ones wait for somebody to decide, however long that takes
    Ageing("dead_letters", "resolved_at"),
)


async def delete_old(connection: Connection, *, ageing: Ageing, days: float, limit: int) -> int:
    """Delete the oldest rows past an age; how many."""
    table, time = ageing.table, ageing.time
    cursor = await connection.execute(
        f"""
        DELETE FROM {table}
         WHERE id IN (
            SELECT id
              FROM {table}
             WHERE {time} < now() - make_interval(secs => %s * 86400)
             ORDER BY {time}
             LIMIT %s
         )
        """,
        (days, limit),
    )
    return cursor.rowcount
