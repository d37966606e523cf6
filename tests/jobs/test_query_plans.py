"""What the queue's statements cost at 50,000 rows: plans of the real statements, as executed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from psycopg import AsyncCursor, sql

from forager.db.database import Connection, Database
from forager.db.ids import new_id
from forager.db.schema import SCHEMA_VERSION
from forager.jobs.job import Lease
from forager.jobs.lifecycle import END_OF_LOST_RUN
from forager.jobs.queue import Queue
from forager.jobs.store import leases as lease_rows
from forager.jobs.store import moves

ROWS = 50_000
LEASED = 500
BEATS = 8

Ask = Callable[[Connection], Awaitable[object]]


async def fill(database: Database) -> None:
    """Mostly finished jobs, many that wait, some that run: as a queue looks after a while."""
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_jobs (id, kind, payload, priority, status, worker_id, last_heartbeat,
                                    lease, created_at, completed_at)
            SELECT gen_random_uuid(), 'selftest', '{}', n %% 5,
                   CASE WHEN n <= %(held)s THEN 'processing' WHEN n %% 2 = 0 THEN 'pending'
                        ELSE 'completed' END::job_status,
                   CASE WHEN n <= %(held)s THEN %(worker)s::uuid END,
                   now(), 1, now() - n * interval '1 second',
                   CASE WHEN n > %(held)s AND n %% 2 = 1 THEN now() END
              FROM generate_series(1, %(rows)s) AS n
            """,
            {"held": LEASED, "rows": ROWS, "worker": new_id()},
        )
        await connection.execute("VACUUM ANALYZE crawl_jobs")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


async def explain(
    database: Database, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> list[dict[str, Any]]:
    """The plan nodes of the first statement that `ask` executes, run for real and undone."""
    plans: list[dict[str, Any]] = []
    real = AsyncCursor.execute

    async def execute(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        monkeypatch.setattr(AsyncCursor, "execute", real)
        prefix = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
        async with self.connection.cursor() as explaining:
            statement = query.decode() if isinstance(query, bytes) else query
            await explaining.execute(prefix + statement, params)
            [[[answer]]] = [await explaining.fetchone()]
            plans.extend(nodes(answer["Plan"]))
        return await real(self, query, params, **options)

    async with database.connection() as connection, connection.transaction(force_rollback=True):
        monkeypatch.setattr(AsyncCursor, "execute", execute)
        await ask(connection)
    return plans


def indexes(plan: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node}


# tables of a few rows
SMALL = {"alembic_version", "workers"}


def scans(plan: list[dict[str, Any]]) -> set[str]:
    return {n["Relation Name"] for n in plan if n["Node Type"] == "Seq Scan"} - SMALL


def buffers(plan: list[dict[str, Any]]) -> int:
    return int(plan[0]["Shared Hit Blocks"] + plan[0]["Shared Read Blocks"])


async def current_leases(database: Database) -> list[Lease]:
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT id, lease, worker_id FROM crawl_jobs WHERE status = 'processing' ORDER BY ctid"
        )
        return [Lease(*row) for row in await cursor.fetchall()]


def beat_of(leases: list[Lease]) -> Ask:
    def ask(connection: Connection) -> Awaitable[object]:
        return lease_rows.beat(
            connection,
            worker_id=leases[0].worker_id,
            ids=[lease.job_id for lease in leases],
            leases=[lease.number for lease in leases],
        )

    return ask


async def test_statements_use_their_indexes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(database)
    leases = await current_leases(database)

    claim = await explain(
        database,
        monkeypatch,
        lambda connection: moves.claim_jobs(
            connection,
            worker_id=new_id(),
            kinds=["selftest"],
            limit=1,
            schema=SCHEMA_VERSION,
            stale_after=60.0,
        ),
    )
    assert "crawl_jobs_claim_idx" in indexes(claim)
    assert scans(claim) == set()
    assert buffers(claim) < 100

    alone = await explain(
        database,
        monkeypatch,
        lambda connection: moves.claim_jobs(
            connection,
            worker_id=new_id(),
            kinds=["selftest"],
            limit=4,
            schema=SCHEMA_VERSION,
            stale_after=60.0,
            own_runner=True,
        ),
    )
    assert "crawl_jobs_own_runner_idx" in indexes(alone)
    assert buffers(alone) < 100

    requeue = await explain(
        database,
        monkeypatch,
        lambda connection: moves.apply_moves(
            connection,
            [lease.job_id for lease in leases[:100]],
            END_OF_LOST_RUN,
            actor="test",
            leases=[lease.number for lease in leases[:100]],
        ),
    )
    assert scans(requeue) == set()

    # Other rows than those of the requeue above: its dead versions stay in the indexes until no
    # other transaction of the server can see them, and would be counted here.
    beat = await explain(database, monkeypatch, beat_of(leases[200:210]))
    assert indexes(beat) <= {"crawl_jobs_pkey", "crawl_jobs_held_idx"}
    assert scans(beat) == set()
    assert buffers(beat) < 200

    stale = await explain(
        database, monkeypatch, lambda connection: moves.select_stale(connection, stale_after=120)
    )
    assert indexes(stale) == {"crawl_jobs_held_idx"}
    assert scans(stale) == set()

    unknown = await explain(
        database,
        monkeypatch,
        lambda connection: lease_rows.select_leased_by(connection, leases[0].worker_id),
    )
    assert indexes(unknown) == {"crawl_jobs_held_idx"}


async def test_heartbeats_touch_no_index(database: Database, queue: Queue) -> None:
    await fill(database)
    # One row per page, and no more beats than the page has room for: whether old versions can be
    # pruned meanwhile depends on what other transactions of the server look at.
    leases = (await current_leases(database))[::50]
    before = await updates(database)
    for _ in range(BEATS):
        assert await queue.heartbeat(leases) == {lease.job_id for lease in leases}
    after = await updates(database)
    beats, hot = after[0] - before[0], after[1] - before[1]
    assert beats == BEATS * len(leases)
    assert hot / beats > 0.95


async def updates(database: Database) -> tuple[int, int]:
    """All updates of jobs so far, and those that needed no index entry."""
    async with database.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        cursor = await connection.execute(
            sql.SQL("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s"),
            ("crawl_jobs",),
        )
        row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]
