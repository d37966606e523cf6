"""The wait after failures, in Python and in SQL."""

from __future__ import annotations

from forager.backoff import backoff, backoff_sql
from forager.db.database import Database

FAILURES = (1, 2, 3, 7, 5000)
LONGEST = (1.0, 2.0, 4.0, 60.0, 60.0)


def _are_jittered(waits: list[float]) -> bool:
    return all(most / 2 <= wait <= most for wait, most in zip(waits, LONGEST, strict=True))


def test_waits_double_up_to_a_limit() -> None:
    assert _are_jittered([backoff(failures, 1.0, 60.0) for failures in FAILURES])


async def test_waits_in_sql_are_the_same(database: Database) -> None:
    wait = backoff_sql("before", "%(first)s", "%(longest)s")
    async with database.connection() as connection:
        rows = await connection.execute(
            f"SELECT extract(epoch FROM {wait})::float8 FROM unnest(%(before)s::int[]) f (before)",
            {"first": 1.0, "longest": 60.0, "before": [failures - 1 for failures in FAILURES]},
        )
        assert _are_jittered([seconds for (seconds,) in await rows.fetchall()])
