"""Runners that freeze or sleep past their lease, and pauses."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from uuid import UUID

import psutil
import pytest
from workshop import Shop, at_work, open_shop, runner_of, two_looks, worker_process

from forager.jobs.lifecycle import Status
from forager.jobs.watchdog import Watchdog
from forager.settings import Settings
from support.waiting import eventually, gone, lives


async def in_transaction(shop: Shop) -> bool:
    """Whether the runner has a transaction open and does nothing in it."""
    rows = await shop.sql(
        "SELECT 1 FROM pg_stat_activity"
        " WHERE state = 'idle in transaction' AND datname = current_database()"
        " AND application_name = 'forager runner'"
    )
    return bool(rows)


async def overlapping_runs(shop: Shop, job_id: UUID) -> int:
    """Claims that came before the run before them had ended."""
    moves = [m for m in await shop.history(job_id) if m not in ("pause", "resume", "enqueue")]
    return sum(a == b == "claim" for a, b in pairwise(moves))


async def test_a_frozen_runner_cannot_write_and_blocks_no_other(
    database_url: str, settings: Settings
) -> None:
    """Stopped behind the fence, past its lease, then continued: its job has moved on."""
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("freeze in transaction")
        job = await shop.when(job_id, lambda job: job.status is Status.PROCESSING)

        await eventually(partial(in_transaction, shop))
        # waits for the row until the server ends the frozen session, and no longer
        cancelled = await shop.queue.cancel(job_id)
        assert cancelled.lease == job.lease + 1
        assert await shop.marks(job_id) == []


async def test_a_runner_frozen_past_its_lease_cannot_write_when_continued(
    database_url: str, settings: Settings
) -> None:
    """The whole worker stops inside a transaction, loses its job, and wakes up."""
    async with open_shop(database_url, settings) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("freeze in transaction")

            await eventually(partial(in_transaction, shop))
            tree = worker.tree()
            for process in tree:
                process.suspend()

            # skipped while the frozen session holds the row, until the server ends it
            [job] = await eventually(partial(two_looks, shop))
            assert (job.status, job.retry_count) == (Status.PENDING, 1)
            await shop.queue.cancel(job_id)
            for process in tree:
                process.resume()
            await gone(*(process.pid for process in tree[1:]))
            assert worker.process.poll() is None
        assert await shop.marks(job_id) == []
        assert (await shop.queue.get(job_id)).status is Status.CANCELLED


async def test_a_short_freeze_in_a_transaction_costs_nothing(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop) as supervisor:
        job_id = await shop.enqueue("freeze in transaction")
        await shop.when(job_id, lambda job: job.status is Status.PROCESSING)

        async def frozen() -> bool:
            runner = psutil.Process(runner_of(supervisor, job_id).pid)
            return runner.status() == psutil.STATUS_STOPPED

        async def session_ended() -> bool:
            return not await in_transaction(shop)

        await eventually(frozen)
        await eventually(session_ended)
        # it finds its session ended and starts again from what is committed
        await shop.sql("INSERT INTO crawl_states (job_id, total_processed) VALUES (%s, 1)", job_id)
        os.kill(runner_of(supervisor, job_id).pid, signal.SIGCONT)
        job = await shop.ended(job_id)
        assert job.retry_count == 0
        assert await shop.marks(job_id) == []


async def test_a_machine_that_slept_takes_no_jobs_from_the_living(
    database_url: str, settings: Settings
) -> None:
    """An hour later every heartbeat is old: those who beat again keep their jobs."""
    async with open_shop(database_url, settings) as shop:
        with ExitStack() as stack:
            workers_ = [stack.enter_context(worker_process(shop)) for _ in range(2)]
            ids = [await shop.enqueue("wait for word") for _ in range(2)]
            for job_id in ids:
                await shop.first_mark(job_id)
            tree = [process for worker in workers_ for process in worker.tree()]
            for process in tree:
                process.suspend()
            await shop.sql("UPDATE crawl_jobs SET last_heartbeat = now() - interval '1 hour'")
            watchdog = Watchdog(shop.database, shop.settings)
            assert await watchdog.run_once() == []
            assert watchdog.suspects == 2
            for process in tree:
                process.resume()

            async def beaten() -> bool:
                [row] = await shop.sql(
                    "SELECT count(*) FROM crawl_jobs"
                    " WHERE last_heartbeat > now() - interval '1 minute'"
                )
                return bool(row[0] == 2)

            await eventually(beaten)
            assert await watchdog.run_once() == []
            jobs = [await shop.queue.get(job_id) for job_id in ids]
            assert {(job.status, job.lease) for job in jobs} == {(Status.PROCESSING, 1)}


async def test_a_job_without_renewal_is_dropped_and_costs_no_retry(
    database_url: str, settings: Settings
) -> None:
    """A supervisor stopped for longer than the lease: its job ends before another worker has it."""
    async with open_shop(database_url, settings, stall_limit=4.0, lease_limit=5.0) as shop:
        with worker_process(shop) as worker:
            job_id = await shop.enqueue("note cancellation")
            await shop.first_mark(job_id)
            worker.signal(signal.SIGSTOP)

            async def is_cancelled() -> bool:
                return (await shop.first_mark(job_id)).note == "cancelled"

            await eventually(is_cancelled)
            assert (await shop.queue.get(job_id)).status is Status.PROCESSING
            worker.signal(signal.SIGCONT)
            job = await shop.when(job_id, lambda job: job.lease > 1)
            assert job.retry_count == 0
            assert (await shop.reasons(job_id, "release"))[0] == "the lease was not renewed in time"


@pytest.mark.parametrize("kind", ["wait for word", "wait for ever", "refuse to stop"])
async def test_a_pause_takes_effect(database_url: str, settings: Settings, kind: str) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue(kind)
        mark = await shop.first_mark(job_id)
        assert (await shop.queue.pause(job_id)).shown_status == "pausing"
        job = await shop.when(job_id, lambda job: job.worker_id is None)
        assert (job.status, job.retry_count) == (Status.PAUSED, 0)
        await gone(mark.pid)
        assert await shop.history(job_id) == ["enqueue", "claim", "pause", "park"]
        await shop.queue.resume(job_id)
        await shop.when(job_id, lambda job: job.status is Status.PROCESSING)
        await shop.queue.cancel(job_id)


async def test_a_frozen_runner_is_paused_by_force(
    database_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.jobs.runners.PAUSE_LIMIT", 1.0)
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("freeze")
        mark = await shop.first_mark(job_id)
        await shop.queue.pause(job_id)
        job = await shop.when(job_id, lambda job: job.worker_id is None)
        assert (job.status, job.retry_count) == (Status.PAUSED, 0)
        await gone(mark.pid)


async def test_a_pause_taken_back_at_once_changes_nothing(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop):
        job_id = await shop.enqueue("count", steps=200, seconds=0.005)
        await shop.first_mark(job_id)
        for _ in range(10):
            await shop.queue.pause(job_id)
            resumed = await shop.queue.resume(job_id)
            if resumed.status is not Status.PROCESSING:
                break  # it had parked already, and is claimed again
        job = await shop.ended(job_id)
        assert job.retry_count == 0
        assert [mark.step for mark in await shop.marks(job_id)] == list(range(200))
        assert await overlapping_runs(shop, job_id) == 0


async def test_resuming_a_pausing_job_continues_under_the_same_lease(
    database_url: str, settings: Settings
) -> None:
    async with open_shop(database_url, settings) as shop, at_work(shop) as supervisor:
        job_id = await shop.enqueue("freeze")
        mark = await shop.first_mark(job_id)
        await shop.queue.pause(job_id)

        async def asked_to_stop() -> bool:
            return runner_of(supervisor, job_id).jobs[job_id].stop_sent is not None

        await eventually(asked_to_stop)
        resumed = await shop.queue.resume(job_id)
        assert (resumed.status, resumed.lease) == (Status.PROCESSING, mark.lease)

        async def told_to_go_on() -> bool:
            return runner_of(supervisor, job_id).jobs[job_id].stop_sent is None

        await eventually(told_to_go_on)
        assert lives(mark.pid)
        assert (await shop.queue.get(job_id)).lease == mark.lease
        await shop.queue.cancel(job_id)
