"""Jobs outlive their database: restarts, kills, cut lines, silence, a full disk, lost answers."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import psutil
import psycopg
import pytest
from workshop import Shop, at_work, open_shop, worker_process

from forager.db.database import Connection, Database
from forager.db.embedded import ServerUse
from forager.db.ids import new_id
from forager.errors import DatabaseUnavailable, DiskFull, LeaseLost
from forager.jobs.context import JobContext
from forager.jobs.job import Job, Lease
from forager.jobs.kinds import Completed, JobKind
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.runner import Runner
from forager.jobs.store import moves
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings
from support.flaky_line import FlakyLine
from support.sql import execute
from support.waiting import LIMIT, eventually, gone


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path, poll_interval=0.1, heartbeat_interval=0.2, retry_delay=0.05,
        log_level="critical",
    )  # fmt: skip


def end_server(use: ServerUse, number: signal.Signals = signal.SIGQUIT) -> None:
    """SIGQUIT is PostgreSQL's immediate shutdown; SIGKILL is worse."""
    assert use.pid is not None
    postmaster = psutil.Process(use.pid)
    postmaster.send_signal(number)
    postmaster.wait(LIMIT)


def hurt_server(use: ServerUse, number: signal.Signals) -> None:
    end_server(use, number)
    use.ensure_running()


async def steps_of(shop: Shop, job_id: UUID) -> list[int]:
    return [mark.step for mark in await shop.marks(job_id)]


async def unharmed(shop: Shop, job_id: UUID, steps: int) -> None:
    """Completed in one run, every step once."""
    job = await shop.ended(job_id)
    assert job.retry_count == 0
    assert await steps_of(shop, job_id) == list(range(steps))
    assert await shop.history(job_id) == ["enqueue", "claim", "complete"]


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGKILL])
async def test_a_server_that_restarts_in_the_middle_of_a_job_costs_nothing(
    own_server: ServerUse, own_settings: Settings, number: signal.Signals
) -> None:
    async with open_shop(own_server.url, own_settings) as shop, at_work(shop):
        job_id = await shop.enqueue("count", steps=60, seconds=0.02)
        await shop.first_mark(job_id)
        await asyncio.to_thread(hurt_server, own_server, number)

        async def completed() -> bool:
            try:
                return (await shop.queue.get(job_id)).status is Status.COMPLETED
            except DatabaseUnavailable:
                return False

        await eventually(completed)
        await unharmed(shop, job_id, 60)


async def test_a_worker_brings_its_embedded_server_back(
    own_server: ServerUse, own_settings: Settings
) -> None:
    async with open_shop(own_server.url, own_settings) as shop:
        revived = Database(own_server.url, revive=own_server.ensure_running)
        async with revived:
            supervisor = Supervisor(revived, shop.settings)
            task = asyncio.ensure_future(supervisor.run())
            job_id = await shop.enqueue("count", steps=30, seconds=0.02)
            await shop.first_mark(job_id)
            await asyncio.to_thread(end_server, own_server, signal.SIGKILL)

            async def completed() -> bool:
                try:
                    return (await shop.queue.get(job_id)).status is Status.COMPLETED
                except DatabaseUnavailable:
                    return False

            await eventually(completed)
            await unharmed(shop, job_id, 30)
            supervisor.stop()
            await task


async def test_a_handler_is_called_again_only_when_the_database_is_back(
    own_server: ServerUse, own_settings: Settings
) -> None:
    calls: list[str] = []

    async def ask(context: JobContext) -> Completed:
        calls.append("called")
        await execute(context.database, "SELECT 1")
        return Completed()

    class CountingQueue(Queue):
        looks = 0

        async def leased(self, leases: Sequence[Lease]) -> dict[UUID, Status]:
            self.looks += 1
            return await super().leased(leases)

    async with open_shop(own_server.url, own_settings) as shop:
        job_id = await shop.enqueue("count", steps=1, seconds=0)
        context = await claimed(shop)
        queue = CountingQueue(shop.database, shop.settings)
        await asyncio.to_thread(end_server, own_server)
        run = asyncio.ensure_future(Runner(context, JobKind("count", ask), queue).run())

        async def looked_again() -> bool:
            return queue.looks >= 3

        await eventually(looked_again)
        assert calls == ["called"]
        await asyncio.to_thread(own_server.ensure_running)
        await asyncio.wait_for(run, LIMIT)
        assert calls == ["called", "called"]
        await shop.ended(job_id)


async def test_a_runner_that_dies_during_a_database_outage_is_settled_later(
    own_server: ServerUse, own_settings: Settings
) -> None:
    async with open_shop(own_server.url, own_settings, retry_delay=600.0) as shop, at_work(shop):
        job_id = await shop.enqueue("wait for word")
        mark = await shop.first_mark(job_id)
        await asyncio.to_thread(end_server, own_server)
        os.kill(mark.pid, signal.SIGKILL)
        await gone(mark.pid)
        await asyncio.to_thread(own_server.ensure_running)
        job = await shop.retried(job_id)
        assert job.error_message == "runner was killed by SIGKILL"
        assert await shop.history(job_id) == ["enqueue", "claim", "retry later"]


async def test_a_worker_stops_in_time_during_a_database_outage(
    own_server: ServerUse, own_settings: Settings
) -> None:
    async with open_shop(own_server.url, own_settings, shutdown_grace=2.0) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("wait for word")
            mark = await shop.first_mark(job_id)
            await asyncio.to_thread(end_server, own_server)
            assert await asyncio.to_thread(worker.stop) == 0
            await gone(mark.pid)
        await asyncio.to_thread(own_server.ensure_running)


async def test_lines_cut_again_and_again_cost_nothing(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("count", steps=100, seconds=0.01)
        for step in range(0, 100, 10):

            async def passed(step: int = step) -> bool:
                try:
                    return len(await shop.marks(job_id)) > step
                except DatabaseUnavailable:
                    return False

            await eventually(passed)
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

        async def completed() -> bool:
            try:
                return (await shop.queue.get(job_id)).status is Status.COMPLETED
            except DatabaseUnavailable:
                return False

        await eventually(completed)
        await unharmed(shop, job_id, 100)


async def test_a_line_that_goes_silent_is_given_up(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half open: both ends believe in it, and keepalives are answered."""
    monkeypatch.setattr("forager.jobs.supervisor.ANSWER_LIMIT", 2.0)
    monkeypatch.setattr("forager.db.pool.CHECK_LIMIT", 0.5)
    monkeypatch.setattr("forager.db.database.SILENCE_LIMIT", 0.5)
    async with (
        FlakyLine(database_url) as line,
        open_shop(database_url, settings) as shop,
        open_shop(line.url, settings) as far_shop,
        at_work(far_shop),
    ):
        job_id = await shop.enqueue("count", steps=40, seconds=0.02)
        await shop.first_mark(job_id)
        assert line.silence() >= 3  # listener, supervisor, runner
        await unharmed(shop, job_id, 40)


async def test_a_full_disk_makes_work_wait_and_costs_nothing(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        await shop.sql(
            """
            CREATE FUNCTION disk_full() RETURNS void LANGUAGE plpgsql AS $$
            BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100';
            END $$
            """
        )
        job_id = await shop.enqueue("fill the disk")
        job = await shop.when(job_id, lambda job: job.lease == 2)
        assert (job.status, job.retry_count) == (Status.PENDING, 0)
        assert job.run_after > job.created_at
        assert "no space left" in (await shop.reasons(job_id, "release"))[0]
        await shop.sql(
            "CREATE OR REPLACE FUNCTION disk_full() RETURNS void LANGUAGE sql AS 'SELECT'"
        )
        await shop.sql("UPDATE crawl_jobs SET run_after = now()")
        assert (await shop.ended(job_id)).retry_count == 0


async def test_a_supervisor_waits_while_the_disk_is_full(
    database_url: str, settings: Settings
) -> None:
    """Not even a heartbeat can be written: nothing is claimed, and the worker lives."""
    async with open_shop(database_url, settings) as shop:
        await shop.sql(
            """
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100';
            END $$
            """
        )
        job_id = await shop.enqueue("count", steps=3)
        await shop.sql(
            "CREATE TRIGGER full_disk BEFORE UPDATE ON crawl_jobs EXECUTE FUNCTION refuse()"
        )
        with pytest.raises(DiskFull):
            await Supervisor(shop.database, shop.settings).run_once()
        async with at_work(shop):
            await eventually(lambda: shop.sql("SELECT 1 FROM workers"))
            assert (await shop.queue.get(job_id)).status is Status.PENDING
            await shop.sql("DROP TRIGGER full_disk ON crawl_jobs")
            await unharmed(shop, job_id, 3)


# --- a statement that is executed, and whose answer is lost ------------------------------------


async def test_commits_and_a_completion_whose_answers_are_lost_happen_once(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("lose answers", steps=3)
        await unharmed(shop, job_id, 3)


async def test_a_claim_whose_answer_is_lost_is_given_back(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = moves.claim_jobs
    lost: list[UUID] = []

    async def claim_and_lose(connection: Connection, **arguments: object) -> list[Job]:
        jobs = await real(connection, **arguments)  # type: ignore[arg-type]
        if jobs and not lost:
            lost.append(jobs[0].id)
            raise psycopg.OperationalError("the line went dead after the commit")
        return jobs

    monkeypatch.setattr(moves, "claim_jobs", claim_and_lose)
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("count", steps=3)
        job = await shop.ended(job_id)
        assert lost == [job_id]
        assert (job.retry_count, await steps_of(shop, job_id)) == (0, [0, 1, 2])
        assert await shop.history(job_id) == ["enqueue", "claim", "release", "claim", "complete"]


async def test_an_end_whose_answer_is_lost_is_recorded_once(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor settles a dead runner, and does not receive the answer."""
    async with open_shop(database_url, settings, retry_delay=600.0) as shop:
        supervisor = Supervisor(shop.database, shop.settings)
        real = supervisor._queue.fail
        lost: list[Job | None] = []

        async def fail_and_lose(lease: Lease, error: str) -> Job | None:
            job = await real(lease, error)
            if not lost:
                lost.append(job)
                raise DatabaseUnavailable("the line went dead after the commit")
            return job

        monkeypatch.setattr(supervisor._queue, "fail", fail_and_lose)
        task = asyncio.ensure_future(supervisor.run())
        job_id = await shop.enqueue("leave")
        await shop.retried(job_id)

        async def settled() -> bool:
            return not list(supervisor.runners.jobs())

        await eventually(settled)
        supervisor.stop()
        await task
        assert (await shop.queue.get(job_id)).retry_count == 1
        assert await shop.history(job_id) == ["enqueue", "claim", "retry later"]


async def test_behind_a_lost_lease_nothing_is_written(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        job_id = await shop.enqueue("count", steps=1)
        context = await claimed(shop)
        await shop.queue.cancel(job_id)
        with pytest.raises(LeaseLost):
            await write_much(context)
        assert await shop.marks(job_id) == []


async def write_much(context: JobContext) -> None:
    async with context.commit() as connection:
        for step in range(500):
            await connection.execute(
                "INSERT INTO marks (job_id, step) VALUES (%s, %s)", (context.job.id, step)
            )


async def claimed(shop: Shop) -> JobContext:
    worker = new_id()
    [job] = await shop.queue.claim(worker, kinds=["count"])
    return JobContext(job, Lease(job.id, job.lease, worker), shop.database, shop.settings)
