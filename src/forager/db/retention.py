"""Rows that are not needed any more, as the package that owns them declares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, LiteralString

from forager.db.pool import Connection
from forager.db.rows import Tuples


@dataclass(frozen=True, slots=True)
class OldRows:
    """Rows of a table by a condition with named parameters, which SQL calls `t`."""

    table: LiteralString
    condition: LiteralString
    # a time, for the oldest first
    order: LiteralString = ""
    key: LiteralString = "id"

    @classmethod
    def by_time(cls, table: LiteralString, time: LiteralString) -> OldRows:
        """Rows that are older than %(days)s; those without a time are kept."""
        return cls(table, f"{time} < now() - make_interval(secs => %(days)s * 86400)", time)


async def delete_rows(connection: Connection, rows: OldRows, *, limit: int, **values: Any) -> int:
    """Delete some of these rows, in their order; returns how many."""
    order: LiteralString = f"ORDER BY {rows.order}" if rows.order else ""
    return await Tuples(connection).affected(
        f"""
        DELETE FROM {rows.table}
         WHERE {rows.key} IN (
            SELECT t.{rows.key}
              FROM {rows.table} t
             WHERE {rows.condition}
             {order}
             LIMIT %(limit)s
               FOR UPDATE SKIP LOCKED
         )
        """,
        {**values, "limit": limit},
    )
