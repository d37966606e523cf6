"""SQL of what was learned about rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from forager.db.database import Connection


@dataclass(slots=True)
class Lesson:
    """Pages of one URL shape: positive after pages that gained, negative after pages that did not.

    `skipped`: pages that were not rendered since.
    """

    shape: str
    streak: int
    skipped: int


async def select_lessons(connection: Connection, source_id: str, *, limit: int) -> list[Lesson]:
    cursor = connection.cursor(row_factory=class_row(Lesson))
    await cursor.execute(
        """
        SELECT shape, streak, skipped FROM render_lessons
         WHERE source_id = %s
         ORDER BY updated_at DESC
         LIMIT %s
        """,
        (source_id, limit),
    )
    return await cursor.fetchall()


async def upsert_lessons(connection: Connection, source_id: str, lessons: Sequence[Lesson]) -> None:
    await connection.execute(
        """
        INSERT INTO render_lessons (source_id, shape, streak, skipped)
        SELECT %(source_id)s, n.*
          FROM unnest(%(shapes)s::text[], %(streaks)s::int[], %(skipped)s::int[]) AS n
            ON CONFLICT (source_id, shape) DO UPDATE
           SET streak = EXCLUDED.streak, skipped = EXCLUDED.skipped, updated_at = now()
        """,
        {
            "source_id": source_id,
            "shapes": [lesson.shape for lesson in lessons],
            "streaks": [lesson.streak for lesson in lessons],
            "skipped": [lesson.skipped for lesson in lessons],
        },
    )
