"""Forager behind a real PgBouncer in transaction mode."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import pytest
from pydantic import SecretStr

from forager.checks import Level
from forager.crawl.options import crawl_options
from forager.crawl.service import request_crawl
from forager.db.database import RUNNER_LIMITS, Database, SessionLimits, open_database
from forager.doctor.server import check_pool
from forager.errors import DatabaseUnavailable, InvalidInput
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.settings import Settings
from servers.site import Site, html
from services.servers.pgbouncer import PgBouncer
from support.sql import execute
from support.waiting import eventually

LIMIT = 120.0
PAGES = 120
FORAGER = Path(sys.executable).with_name("forager")
CLIENTS = 40


@pytest.fixture
def pool_url(pgbouncer: PgBouncer, database_url: str) -> str:
    return pgbouncer.through(database_url)


@pytest.fixture
async def pooled(database_url: str, pool_url: str) -> AsyncIterator[Database]:
    async with Database(
        database_url, name="forager test", max_size=CLIENTS, pool_url=pool_url
    ) as database:
        yield database


@pytest.fixture
def pooled_settings(settings: Settings, pool_url: str) -> Settings:
    return settings.model_copy(update={"database_pool_url": SecretStr(pool_url)})


async def test_statements_are_repeated_on_many_sessions(pooled: Database) -> None:
    """Prepared ones would be missing in one session, and there twice in another."""

    async def ask() -> None:
        for _ in range(10):
            async with pooled.transaction() as connection:
                await connection.execute("SELECT count(*) FROM crawl_jobs WHERE lease = %s", (1,))

    await asyncio.gather(*(ask() for _ in range(CLIENTS)))


async def test_many_clients_share_few_sessions(pooled: Database, database: Database) -> None:
    together = asyncio.Barrier(CLIENTS)
    seen: set[int] = set()

    async def work() -> None:
        async with pooled.connection() as connection:
            await together.wait()  # all are connected
            for _ in range(5):
                cursor = await connection.execute("SELECT pg_backend_pid()")
                seen.update(row[0] for row in await cursor.fetchall())

    async with asyncio.timeout(LIMIT):
        await asyncio.gather(*(work() for _ in range(CLIENTS)))
    assert 1 <= len(seen) <= 8  # the pool's size


async def test_each_transaction_has_the_limits_of_its_client(
    database_url: str, pool_url: str
) -> None:
    async with Database(database_url, limits=RUNNER_LIMITS, pool_url=pool_url) as database:
        async with database.transaction() as connection:
            assert await limits(connection) == ["1min", "10s", "5s"]
            async with connection.transaction():
                assert await limits(connection) == ["1min", "10s", "5s"]
        async with database.connection() as connection:
            assert await limits(connection) == ["1min", "10s", "10s"]  # the pool's own
            async with connection.pipeline(), connection.transaction():
                assert await limits(connection) == ["1min", "10s", "5s"]


async def test_a_transaction_still_chooses_its_isolation(pooled: Database) -> None:
    async with pooled.transaction() as connection:
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor = await connection.execute("SHOW transaction_isolation")
        assert await cursor.fetchone() == ("repeatable read",)


async def limits(connection: psycopg.AsyncConnection[tuple[str, ...]]) -> list[str]:
    cursor = await connection.execute(
        "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),"
        " current_setting('idle_in_transaction_session_timeout')"
    )
    row = await cursor.fetchone()
    assert row is not None
    return list(row)


async def test_a_frozen_transaction_is_ended_by_the_server(
    database_url: str, pool_url: str, database: Database
) -> None:
    quick = SessionLimits(idle_in_transaction_ms=100)

    async def freeze(frozen: Database) -> None:
        async with frozen.transaction() as connection:
            await connection.execute("LOCK TABLE crawl_jobs")
            async with database.transaction() as other:  # gets it when the session is ended
                await other.execute("LOCK TABLE crawl_jobs")
            await connection.execute("SELECT 1")

    async with Database(database_url, limits=quick, pool_url=pool_url) as frozen:
        with pytest.raises(DatabaseUnavailable):
            await freeze(frozen)


async def test_notifications_wake_though_they_are_sent_through_the_pool(
    pooled: Database, pooled_settings: Settings
) -> None:
    queue = Queue(pooled, pooled_settings)
    async with asyncio.timeout(LIMIT), aclosing(pooled.notifications("forager_test")) as notified:
        await anext(notified)
        async with pooled.transaction() as connection:
            await connection.execute("SELECT pg_notify('forager_test', '')")
        await anext(notified)
    job = (await queue.enqueue(NewJob(kind="selftest"))).job
    assert job.status is Status.PENDING


async def test_the_doctor_looks_at_the_limits_of_the_pool(
    settings: Settings, pooled: Database, database_url: str
) -> None:
    assert (await check_pool(pooled, settings)).level is Level.OK
    async with Database(database_url, pool_url=database_url) as unlimited:
        assert (await check_pool(unlimited, settings)).level is Level.WARN


async def test_a_pool_needs_the_server_behind_it(pool_url: str, settings: Settings) -> None:
    alone = settings.model_copy(
        update={"database_url": None, "database_pool_url": SecretStr(pool_url)}
    )
    with pytest.raises(InvalidInput, match="FORAGER_DATABASE_URL"):
        async with open_database(alone):
            pass


async def test_a_killed_worker_is_recovered_and_the_crawl_completes(
    pooled: Database,
    pooled_settings: Settings,
    pgbouncer: PgBouncer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    links = [f"/{n}" for n in range(1, PAGES)]
    site = Site({"/": html("all", links)} | {at: html(f"page {at}") for at in links}, delay=0.02)
    configure(pooled_settings, monkeypatch)
    queue = Queue(pooled, pooled_settings)
    async with asyncio.timeout(LIMIT):
        with site.served(), ExitStack() as workers:
            job_id = await ask_for_crawl(queue, site)
            first = workers.enter_context(worker_process())
            await eventually(lambda: len(site.log) > PAGES // 4)
            names = {client["application_name"] for client in pgbouncer.show("CLIENTS")}
            assert names >= {"forager worker", "forager runner"}
            kill_tree(first)
            # a dead runner's share of the host ends by itself, but that takes ten seconds
            await execute(pooled, "DELETE FROM domain_permits")
            workers.enter_context(worker_process())
            await finished(queue, job_id)
    job = await queue.get(job_id)
    assert job.status is Status.COMPLETED, job
    assert await execute(
        pooled, "SELECT outcome, count(*) FROM crawl_visited WHERE job_id = %s GROUP BY 1", job_id
    ) == [("fetched", PAGES)]
    assert [event.move for event in await queue.events(job_id)].count("claim") == 2


async def test_tasks_go_through_the_pool_too(
    pooled: Database,
    pooled_settings: Settings,
    pgbouncer: PgBouncer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(pooled_settings, monkeypatch)

    async def registered() -> bool:
        return bool(await execute(pooled, "SELECT 1 FROM workers WHERE role = 'tasks'"))

    async with asyncio.timeout(LIMIT):
        with worker_process("--no-jobs"):
            await eventually(registered)
            (worker_id,) = (await execute(pooled, "SELECT id FROM workers WHERE role = 'tasks'"))[0]
            names = {client["application_name"] for client in pgbouncer.show("CLIENTS")}
            assert f"forager tasks {worker_id}" in names


def configure(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command finds in its environment."""
    assert settings.database_url is not None
    assert settings.database_pool_url is not None
    monkeypatch.setenv("FORAGER_HOME", str(settings.home))
    monkeypatch.setenv("FORAGER_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("FORAGER_DATABASE_POOL_URL", settings.database_pool_url.get_secret_value())
    monkeypatch.setenv("FORAGER_POLL_INTERVAL", "0.1")
    monkeypatch.setenv("FORAGER_HEARTBEAT_INTERVAL", "0.2")
    monkeypatch.setenv("FORAGER_WATCHDOG_INTERVAL", "0.5")
    monkeypatch.setenv("FORAGER_LOG_LEVEL", "critical")


async def ask_for_crawl(queue: Queue, site: Site) -> UUID:
    given = {"urls": [site.url], "allow_private": True, "concurrency": 4}
    return (await request_crawl(queue, crawl_options(given), source="site")).job.id


@contextmanager
def worker_process(which: str = "--no-tasks") -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([FORAGER, "worker", which])
    try:
        yield process
    finally:
        process.terminate()
        process.wait(LIMIT)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    leader = psutil.Process(process.pid)
    for member in [leader, *leader.children(recursive=True)]:
        member.kill()
    process.wait(LIMIT)


async def finished(queue: Queue, job_id: UUID) -> None:
    while (await queue.get(job_id)).completed_at is None:
        await asyncio.sleep(0.1)
