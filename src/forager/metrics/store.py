"""Statements of the metrics that all processes add to. SQL only."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from forager.db.database import Connection
from forager.metrics.meters import Key


async def add_values(
    connection: Connection, writer: UUID, addition: int, values: Mapping[Key, float]
) -> None:
    """Add to what is there; the same addition of the same writer counts once.

    In one order for everybody, so that no two of them wait for each other.
    """
    rows = sorted(values.items())
    await connection.execute(
        """
        WITH new AS (
            INSERT INTO metric_writers AS w (id, addition) VALUES (%(writer)s, %(addition)s)
            ON CONFLICT (id) DO UPDATE
               SET addition = excluded.addition, written_at = now()
             WHERE w.addition < excluded.addition
            RETURNING id
        )
        INSERT INTO metric_values AS m (name, labels, part, value)
        SELECT v.name, v.labels::text[], v.part, v.value
          FROM new,
               unnest(%(names)s::text[], %(labels)s::text[], %(parts)s::text[],
                      %(values)s::float8[])
               WITH ORDINALITY AS v (name, labels, part, value, place)
         ORDER BY v.place
        ON CONFLICT (name, labels, part) DO UPDATE SET value = m.value + excluded.value
        """,
        {
            "writer": writer,
            "addition": addition,
            "names": [name for (name, _, _), _ in rows],
            "labels": [_array(labels) for (_, labels, _), _ in rows],
            "parts": [part for (_, _, part), _ in rows],
            "values": [float(value) for _, value in rows],
        },
    )


async def select_values(connection: Connection) -> dict[Key, float]:
    cursor = await connection.execute("SELECT name, labels, part, value FROM metric_values")
    return {(name, tuple(labels), part): value async for name, labels, part, value in cursor}


async def delete_writer(connection: Connection, writer: UUID) -> None:
    await connection.execute("DELETE FROM metric_writers WHERE id = %s", (writer,))


async def delete_silent_writers(connection: Connection, *, older_than: float) -> None:
    """Forget processes that ended without a word."""
    await connection.execute(
        "DELETE FROM metric_writers WHERE written_at < now() - %s * interval '1 second'",
        (older_than,),
    )


def _array(labels: tuple[str, ...]) -> str:
    """Label values as the text of an array: arrays of unequal lengths make no array."""
    quoted = (label.replace("\\", "\\\\").replace('"', '\\"') for label in labels)
    return "{" + ",".join(f'"{label}"' for label in quoted) + "}"
