"""Many jobs in one runner: what happens to one of them does not touch the others."""

from __future__ import annotations

import os
import signal
from uuid import UUID

import pytest
from workshop import Mark, Shop, at_work, open_shop, runner_of, worker_process

from forager.checks import Level
from forager.jobs.checks import check_workers
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.workers import list_workers
from forager.settings import Settings
from support.waiting import eventually, gone, lives

JOBS = 12


async def start(shop: Shop, kind: str = "shared wait for word", jobs: int = JOBS) -> list[UUID]:
    """Jobs that have committed once, all in one runner."""
    ids = [await shop.enqueue(kind) for _ in range(jobs)]
    marks = [await shop.first_mark(job_id) for job_id in ids]
    assert len({mark.pid for mark in marks}) == 1
    return ids


async def mark_under_next_lease(shop: Shop, mark: Mark) -> Mark:
    async def look() -> Mark | None:
        last = await shop.first_mark(mark.job_id)
        return last if last.lease > mark.lease else None

    found = await eventually(look)
    assert found is not None
    return found


async def jobs_of(shop: Shop, ids: list[UUID]) -> list[Job]:
    return [await shop.queue.get(job_id) for job_id in ids]


async def test_jobs_share_a_runner_and_its_connections(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        await start(shop, jobs=30)
        [[connections]] = await shop.sql(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'forager runner'"
        )
        assert connections <= 8


async def test_jobs_are_spread_over_the_runners(database_url: str, settings: Settings) -> None:
    async with open_shop(database_url, settings, worker_runners=2) as shop, at_work(shop):
        ids = [await shop.enqueue("shared wait for word") for _ in range(6)]
        pids = [(await shop.first_mark(job_id)).pid for job_id in ids]
        assert sorted(map(pids.count, set(pids))) == [3, 3]


async def test_custom_kinds_get_a_process_of_their_own(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        ids = [await shop.enqueue("wait for word") for _ in range(2)]
        first, second = [(await shop.first_mark(job_id)).pid for job_id in ids]
        assert first != second
        assert all(job.own_runner for job in await jobs_of(shop, ids))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_lost_runner_costs_its_jobs_no_retry(
    database_url: str, settings: Settings, number: signal.Signals
) -> None:
    async with (
        open_shop(database_url, settings, worker_runners=1, stall_limit=3.0) as shop,
        at_work(shop),
    ):
        ids = await start(shop)
        marks = [await shop.first_mark(job_id) for job_id in ids]
        os.kill(marks[0].pid, number)
        for mark in marks:
            again = await mark_under_next_lease(shop, mark)
            assert again.pid != mark.pid
        for job in await jobs_of(shop, ids):
            assert (job.status, job.retry_count) == (Status.PROCESSING, 0)
            assert (job.runner_losses, job.own_runner) == (1, False)
            assert await shop.history(job.id) == ["enqueue", "claim", "requeue", "claim"]
        assert not lives(marks[0].pid)


async def test_after_two_losses_a_job_runs_alone_and_only_then_spends_retries(
    database_url: str, settings: Settings
) -> None:
    async with (
        open_shop(database_url, settings, worker_runners=1, retry_delay=0.0) as shop,
        at_work(shop) as supervisor,
    ):
        killer = await shop.enqueue("shared be killed", max_retries=1, signal=int(signal.SIGKILL))
        job = await shop.ended(killer, Status.FAILED)
        assert await shop.history(killer) == [
            "enqueue", "claim", "requeue", "claim", "requeue", "claim", "retry later", "claim",
            "fail",
        ]  # fmt: skip
        assert (job.retry_count, job.runner_losses, job.own_runner) == (1, 2, True)
        assert job.error_message == (
            "crashed and exceeded max retries (1): runner was killed by SIGKILL"
        )
        assert supervisor.runners.of(killer) is None


async def test_a_job_that_kills_runners_takes_others_with_it_twice_at_most(
    database_url: str, settings: Settings
) -> None:
    limits = {"worker_runners": 1, "worker_own_runners": 8, "retry_delay": 0.0}
    async with open_shop(database_url, settings, **limits) as shop:
        async with at_work(shop):
            ids = await start(shop, jobs=4)
            killer = await shop.enqueue(
                "shared be killed", max_retries=1, signal=int(signal.SIGKILL)
            )
            await shop.ended(killer, Status.FAILED)
            jobs = await jobs_of(shop, ids)
        assert {job.retry_count for job in jobs} == {0}
        assert all(job.runner_losses <= 2 for job in jobs)


async def test_a_job_that_blocks_the_event_loop_is_found_at_once(
    database_url: str, settings: Settings
) -> None:
    async with (
        open_shop(database_url, settings, worker_runners=1, stall_limit=6.0) as shop,
        at_work(shop) as supervisor,
    ):
        ids = await start(shop)
        marks = [await shop.first_mark(job_id) for job_id in ids]
        blocking = await shop.enqueue("shared freeze")
        await shop.first_mark(blocking)
        for mark in marks:
            await mark_under_next_lease(shop, mark)
        for job in await jobs_of(shop, ids):
            assert (job.retry_count, job.runner_losses, job.own_runner) == (0, 0, False)

        async def runs_alone() -> bool:
            runner = supervisor.runners.of(blocking)
            return runner is not None and runner.own

        await eventually(runs_alone)
        job = await shop.queue.get(blocking)
        assert (job.retry_count, job.own_runner) == (0, True)
        assert "frozen" in (await shop.reasons(blocking, "requeue"))[0]


async def test_a_runner_without_memory_is_lost_with_its_jobs(
    database_url: str, settings: Settings
) -> None:
    limits = {"worker_runners": 1, "worker_own_runners": 8, "job_memory_limit_mb": 300}
    async with open_shop(database_url, settings, **limits) as shop, at_work(shop):
        ids = await start(shop, jobs=4)
        swelling = await shop.enqueue("shared swell", max_retries=0)
        job = await shop.ended(swelling, Status.FAILED)
        assert "more than 300 MB (job_memory_limit_mb)" in (job.error_message or "")
        assert await shop.history(swelling) == [
            "enqueue", "claim", "requeue", "claim", "requeue", "claim", "fail",
        ]  # fmt: skip
        for job in await jobs_of(shop, ids):
            assert job.retry_count == 0


async def test_a_job_with_much_memory_moves_to_a_runner_of_its_own(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        job_id = await shop.enqueue("shared claim memory")
        mark = await shop.first_mark(job_id)
        again = await mark_under_next_lease(shop, mark)
        assert again.pid != mark.pid
        assert await shop.history(job_id) == ["enqueue", "claim", "move out", "claim"]
        job = await shop.queue.get(job_id)
        assert (job.retry_count, job.runner_losses, job.own_runner) == (0, 0, True)


async def test_a_survivor_returns_to_a_shared_runner(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.jobs.runners.PROOF", 0.0)
    async with open_shop(database_url, settings, worker_runners=1) as shop:
        job_id = await shop.enqueue("shared wait for word")
        await shop.sql("UPDATE crawl_jobs SET runner_losses = 2, own_runner = true")
        async with at_work(shop):
            job = await shop.when(job_id, lambda job: job.lease > 2)
            assert (job.own_runner, job.runner_losses, job.retry_count) == (False, 1, 0)
            assert await shop.history(job_id) == ["enqueue", "claim", "move back", "claim"]


@pytest.mark.parametrize("kind", ["wait for word", "wait for ever"])
async def test_one_of_many_is_paused(database_url: str, settings: Settings, kind: str) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        ids = await start(shop, f"shared {kind}")
        await shop.queue.pause(ids[3])
        job = await shop.when(ids[3], lambda job: job.worker_id is None)
        assert (job.status, job.retry_count) == (Status.PAUSED, 0)
        await assert_untouched(shop, [job_id for job_id in ids if job_id != job.id])


async def test_one_of_many_is_cancelled(database_url: str, settings: Settings) -> None:
    async with (
        open_shop(database_url, settings, worker_runners=1) as shop,
        at_work(shop) as supervisor,
    ):
        ids = await start(shop, "shared wait for ever")
        await shop.queue.cancel(ids[3])

        async def is_gone() -> bool:
            return supervisor.runners.of(ids[3]) is None

        await eventually(is_gone)
        await assert_untouched(shop, [job_id for job_id in ids if job_id != ids[3]])


async def test_one_of_many_loses_its_lease(database_url: str, settings: Settings) -> None:
    """As after a recovery by a watchdog: the job runs again, the others continue."""
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        ids = await start(shop)
        mark = await shop.first_mark(ids[3])
        await shop.sql(
            "UPDATE crawl_jobs SET status = 'pending', worker_id = NULL, lease = lease + 1"
            " WHERE id = %s",
            ids[3],
        )
        again = await mark_under_next_lease(shop, mark)
        assert again.pid == mark.pid
        await assert_untouched(shop, [job_id for job_id in ids if job_id != ids[3]])


async def test_one_of_many_is_stuck(database_url: str, settings: Settings) -> None:
    """It spends a retry: a job that commits nothing is the cause with certainty."""
    async with (
        open_shop(database_url, settings, worker_runners=1, retry_delay=600.0) as shop,
        at_work(shop) as supervisor,
    ):
        ids = await start(shop)
        job = runner_of(supervisor, ids[3]).jobs[ids[3]]
        job.last_progress -= shop.settings.progress_limit
        retried = await shop.retried(ids[3])
        assert "no progress for 900 s (progress_limit)" in (retried.error_message or "")
        await assert_untouched(shop, [job_id for job_id in ids if job_id != ids[3]])


@pytest.mark.parametrize("kind", ["refuse to stop", "refuse to stop and park late"])
async def test_one_of_many_that_refuses_to_stop_is_ended_with_its_runner(
    database_url: str, settings: Settings, kind: str
) -> None:
    """The others do not count that loss, and the one that caused it runs alone from then on."""
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        ids = await start(shop, jobs=3)
        marks = [await shop.first_mark(job_id) for job_id in ids]
        refusing = await shop.enqueue(f"shared {kind}")
        await shop.first_mark(refusing)
        await shop.queue.pause(refusing)
        for mark in marks:
            await mark_under_next_lease(shop, mark)
        await gone(marks[0].pid)
        for job in await jobs_of(shop, ids):
            assert (job.retry_count, job.runner_losses, job.own_runner) == (0, 0, False)
        job = await shop.when(refusing, lambda job: job.own_runner)
        assert (job.status, job.retry_count) == (Status.PAUSED, 0)


async def test_jobs_of_a_runner_whose_supervisor_is_killed_are_given_back(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop:
        with worker_process(shop) as worker:
            ids = await start(shop)
            mark = await shop.first_mark(ids[0])
            worker.kill()
            for job_id in ids:
                job = await shop.when(job_id, lambda job: job.status is Status.PENDING)
                assert (job.retry_count, job.runner_losses) == (0, 0)
                assert await shop.reasons(job_id, "release") == ["orphaned"]
            await gone(mark.pid)


async def test_a_worker_that_dies_with_its_runners_costs_shared_jobs_a_loss_and_no_retry(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop:
        with worker_process(shop) as worker:
            ids = await start(shop, jobs=4)
            await gone(*worker.kill_all())
        async with at_work(shop):  # its watchdog looks when it starts
            for job_id in ids:
                job = await shop.when(job_id, lambda job: job.lease > 2)
                assert (job.retry_count, job.runner_losses) == (0, 1)


async def test_all_jobs_are_given_back_when_the_worker_stops(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop:
        with worker_process(shop) as worker:
            ids = await start(shop)
            assert worker.stop() == 0
        for job in await jobs_of(shop, ids):
            assert (job.status, job.retry_count, job.runner_losses) == (Status.PENDING, 0, 0)
            assert await shop.reasons(job.id, "release") == ["shutdown"]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("lag", "the event loop of a runner lags by"), ("extract slowly", "1000 pages wait")],
)
async def test_a_worker_with_a_busy_runner_claims_no_more_jobs_and_says_why(
    database_url: str, settings: Settings, kind: str, reason: str
) -> None:
    async with open_shop(database_url, settings, worker_runners=1) as shop, at_work(shop):
        busy = await shop.enqueue(f"shared {kind}")
        await shop.first_mark(busy)

        async def brake() -> str | None:
            [worker] = await list_workers(shop.database, shop.settings)
            return worker.brake

        assert reason in str(await eventually(brake))
        waiting = await shop.enqueue("shared count", steps=1)
        finding = await check_workers(shop.database, shop.settings)
        assert finding.level is Level.WARN
        assert f"one claims no more jobs: {reason}" in finding.message
        assert (await shop.queue.get(waiting)).status is Status.PENDING
        await shop.queue.pause(busy)
        await shop.ended(waiting)


async def assert_untouched(shop: Shop, ids: list[UUID]) -> None:
    """They run under their first lease, and their runner still works for them."""
    for job in await jobs_of(shop, ids):
        assert (job.status, job.lease, job.retry_count) == (Status.PROCESSING, 1, 0)
    await shop.queue.pause(ids[0])
    parked = await shop.when(ids[0], lambda job: job.worker_id is None)
    assert parked.retry_count == 0
