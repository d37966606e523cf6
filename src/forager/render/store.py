"""SQL of what was learned about rendering, per source for crawls and per domain for tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows

# a crawl learns about its source, a task about its domain
StatsOwner = str | int


@dataclass(slots=True)
class ShapeStats:
    """Pages of one URL shape: positive after pages that gained, negative after pages that did not.

    `skipped`: pages that were not rendered since.
    """

    shape: str
    streak: int
    skipped: int
    updated_at: datetime | None = None


async def select_shape_stats(
    connection: Connection, owner: StatsOwner, *, limit: int
) -> list[ShapeStats]:
    """What rendering gained for pages of each shape, latest first."""
    table, key = _place(owner)
    return await Rows(connection, ShapeStats).all(
        f"""
        SELECT shape, streak, skipped, updated_at FROM {table}
         WHERE {key} = %s
         ORDER BY updated_at DESC
         LIMIT %s
        """,
        (owner, limit),
    )


async def upsert_shape_stats(
    connection: Connection, owner: StatsOwner, stats: Sequence[ShapeStats]
) -> None:
    """Store what rendering gained; the numbers replace those of the same shapes."""
    table, key = _place(owner)
    await connection.execute(
        f"""
        INSERT INTO {table} ({key}, shape, streak, skipped)
        SELECT %(owner)s, n.*
          FROM unnest(%(shapes)s::text[], %(streaks)s::int[], %(skipped)s::int[]) AS n
         ORDER BY 2
            ON CONFLICT ({key}, shape) DO UPDATE
           SET streak = EXCLUDED.streak, skipped = EXCLUDED.skipped, updated_at = now()
        """,
        {
            "owner": owner,
            "shapes": [shape_stats.shape for shape_stats in stats],
            "streaks": [shape_stats.streak for shape_stats in stats],
            "skipped": [shape_stats.skipped for shape_stats in stats],
        },
    )


def _place(owner: StatsOwner) -> tuple[LiteralString, LiteralString]:
    if isinstance(owner, int):
        return "domain_render_lessons", "domain_id"
    return "render_lessons", "source_id"
