"""Workers as processes: racing, killed, stopped."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import pytest
from workshop import at_work, open_shop, two_looks, worker_process

from forager.jobs import workers
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.supervisor import Supervisor
from forager.jobs.watchdog import Watchdog, delete_old_jobs
from forager.settings import Settings
from support.waiting import eventually, gone, lives


async def test_two_workers_race_and_every_job_runs_once(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_capacity=4) as shop:
        with worker_process(shop) as first, worker_process(shop) as second:
            jobs = await shop.queue.enqueue_many(
                [NewJob(kind="count", payload={"steps": 1}) for _ in range(10)]
            )

            async def all_done() -> bool:
                return (await shop.queue.counts())[Status.COMPLETED] == len(jobs)

            await eventually(all_done)
        runs = Counter(row[0] for row in await shop.sql("SELECT job_id FROM marks"))
        assert runs == Counter(job.id for job in jobs)
        claims = await shop.sql("SELECT actor FROM job_events WHERE move = 'claim'")
        assert len(claims) == len(jobs)
        assert {row[0] for row in claims} == {f"worker {w.worker_id}" for w in (first, second)}


async def test_a_runner_whose_supervisor_is_killed_gives_its_job_back(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("wait for word")
            mark = await shop.first_mark(job_id)
            worker.kill()
            job = await shop.when(job_id, lambda job: job.status is Status.PENDING)
            assert job.retry_count == 0
            assert await shop.reasons(job_id, "release") == ["orphaned"]
            await gone(mark.pid)
        async with at_work(shop):
            await shop.when(job_id, lambda job: job.status is Status.PROCESSING)


async def test_worker_and_runner_killed_together_cost_one_retry(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("wait for word")
            await shop.first_mark(job_id)
            await gone(*worker.kill_all())
            # as it looks from another machine, where the end of the process cannot be seen
            await shop.sql("UPDATE workers SET process = 'elsewhere 1 1' RETURNING 1")
            # skipped until the server has noticed that the killed ones are gone
            [recovered] = await eventually(partial(two_looks, shop))
            assert (recovered.id, recovered.status) == (job_id, Status.PENDING)
            job = await shop.queue.get(job_id)
            assert job.retry_count == 1
            assert "no heartbeat for more than 120 s" in (job.error_message or "")


async def test_the_jobs_of_a_worker_that_died_on_this_machine_are_given_back_at_once(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_capacity=1) as shop:
        with worker_process(shop) as living, worker_process(shop) as dying:
            jobs = [await shop.enqueue("wait for word") for _ in range(2)]
            for job_id in jobs:
                await shop.first_mark(job_id)
            await gone(*dying.kill_all())
            watchdog = Watchdog(shop.database, shop.settings)

            async def given_back() -> list[str]:
                # skipped until the server has noticed that the killed ones are gone
                await watchdog.run_once()
                return [why for job_id in jobs for why in await shop.reasons(job_id, "retry later")]

            assert await eventually(given_back) == ["the process of the worker has died"]
            leased = {job_id: (await shop.queue.get(job_id)).worker_id for job_id in jobs}
            assert set(leased.values()) <= {living.worker_id, None}


async def test_a_worker_that_is_asked_to_stop_gives_its_jobs_back(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop) as worker:
            ids = [await shop.enqueue("wait for word") for _ in range(2)]
            marks = [await shop.first_mark(job_id) for job_id in ids]
            assert worker.stop() == 0
        for job_id, mark in zip(ids, marks, strict=True):
            job = await shop.queue.get(job_id)
            assert (job.status, job.retry_count, job.worker_id) == (Status.PENDING, 0, None)
            assert await shop.reasons(job_id, "release") == ["shutdown"]
            assert not lives(mark.pid)
        assert await shop.sql("SELECT * FROM workers") == []


@pytest.mark.parametrize("kind", ["freeze", "refuse to stop"])
async def test_runners_that_do_not_stop_in_time_are_killed_and_their_jobs_given_back(
    database_url: str, settings: Settings, kind: str
) -> None:
    async with open_shop(database_url, settings, shutdown_grace=1.0) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue(kind)
            mark = await shop.first_mark(job_id)
            assert worker.stop() == 0
        job = await shop.queue.get(job_id)
        assert (job.status, job.retry_count) == (Status.PENDING, 0)
        assert not lives(mark.pid)


async def test_a_service_manager_may_stop_all_processes_at_once(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("wait for word")
            await shop.first_mark(job_id)
            for process in worker.tree():
                process.terminate()
            job = await shop.when(job_id, lambda job: job.status is Status.PENDING)
            assert (job.retry_count, await shop.reasons(job_id, "release")) == (0, ["shutdown"])


async def test_cancelling_kills_the_runner(database_url: str, settings: Settings) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("freeze")
        mark = await shop.first_mark(job_id)
        await shop.queue.cancel(job_id)
        await gone(mark.pid)
        job = await shop.queue.get(job_id)
        assert (job.status, job.retry_count) == (Status.CANCELLED, 0)
        assert await shop.history(job_id) == ["enqueue", "claim", "cancel"]


async def test_a_worker_of_another_schema_version_claims_nothing_and_says_why(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop:
        await shop.sql("UPDATE alembic_version SET version_num = '9999'")
        job_id = await shop.enqueue("count", steps=1)
        async with at_work(shop) as supervisor:

            async def note() -> str | None:
                async with shop.database.connection() as connection:
                    return next(
                        (w.note for w in await workers.select_workers(connection, stale_after=60)),
                        None,
                    )

            assert "claims nothing: the database has schema 9999" in str(await eventually(note))
            await supervisor.run_once()
            assert (await shop.queue.get(job_id)).status is Status.PENDING


async def test_a_runner_that_cannot_be_started_is_not_the_jobs_fault(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shop(database_url, settings) as shop:
        monkeypatch.setattr("sys.executable", "/nonexistent/python")
        job_id = await shop.enqueue("count", steps=1)
        supervisor = Supervisor(shop.database, shop.settings)
        await supervisor.run_once()
        job = await shop.queue.get(job_id)
        assert (job.status, job.retry_count) == (Status.PENDING, 0)
        assert "no runner could be started" in (await shop.reasons(job_id, "release"))[0]


async def test_a_bug_ends_the_worker_loudly_and_its_jobs_are_given_back(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_shop(database_url, settings) as shop:
        supervisor = Supervisor(shop.database, shop.settings)
        task = asyncio.ensure_future(supervisor.run())
        job_id = await shop.enqueue("wait for word")
        await shop.first_mark(job_id)

        async def bug() -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(supervisor, "_follow_states", bug)
        with pytest.raises(ZeroDivisionError):
            await task
        job = await shop.queue.get(job_id)
        assert (job.status, job.retry_count) == (Status.PENDING, 0)


async def test_upkeep_forgets_workers_that_died(database_url: str, settings: Settings) -> None:
    async with open_shop(database_url, settings) as shop:
        await shop.sql(
            "INSERT INTO workers (id, host, pid, version, capacity, last_seen)"
            " SELECT gen_random_uuid(), 'here', 1, '1', 1, now() - days * interval '1 day'"
            " FROM unnest(ARRAY[0, 3]) AS days"
        )
        await delete_old_jobs(shop.database, shop.settings)
        assert await shop.sql("SELECT count(*) FROM workers") == [(1,)]
