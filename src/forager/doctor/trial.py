"""A real job, through the real queue, supervisor and runner."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from forager.db.database import open_database
from forager.doctor.check import Check, fail, ok
from forager.jobs.job import Job, NewJob
from forager.jobs.kinds import load_kinds
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings

STEPS = 20
STEP_SECONDS = 0.05
LOOK_INTERVAL = 0.1
TRIAL_LIMIT = 60.0

Watch = Callable[[Job], None]


async def run_trial(settings: Settings, watch: Watch, *, limit: float = TRIAL_LIMIT) -> Check:
    """Run a selftest job to its end; `watch` sees it whenever it was looked at."""
    load_kinds(settings.job_modules)
    started = time.perf_counter()
    async with open_database(settings, name="forager doctor") as database:
        queue = Queue(database, settings)
        payload = {"steps": STEPS, "seconds": STEP_SECONDS}
        new = NewJob(kind="selftest", payload=payload, priority=1000, max_retries=0)
        job = (await queue.enqueue(new, actor="doctor")).job
        supervisor = Supervisor(database, settings, only=job.id)
        job = await _run_to_end(supervisor, queue, job, watch, limit)
    return _judge(job, time.perf_counter() - started)


async def _run_to_end(
    supervisor: Supervisor, queue: Queue, job: Job, watch: Watch, limit: float
) -> Job:
    running = asyncio.ensure_future(supervisor.run())
    following = asyncio.ensure_future(_follow(queue, job.id, watch))
    try:
        # the supervisor ends before the job only by a bug, and that should be seen at once
        await asyncio.wait({running, following}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if following.done():
            return following.result()
        return await queue.cancel(job.id, actor="doctor", reason=f"took more than {limit:g} s")
    except asyncio.CancelledError:
        await queue.cancel(job.id, actor="doctor", reason="interrupted")
        raise
    finally:
        following.cancel()
        supervisor.stop()
        await running


async def _follow(queue: Queue, job_id: UUID, watch: Watch) -> Job:
    while True:
        job = await queue.get(job_id)
        watch(job)
        if job.status in FINISHED:
            return job
        await asyncio.sleep(LOOK_INTERVAL)


def _judge(job: Job, seconds: float) -> Check:
    if job.status is Status.COMPLETED:
        return ok("job", f"ran through queue, supervisor and runner in {seconds:.1f} s")
    reason = job.error_message or job.stop_reason or "no reason given"
    return fail("job", f"{job.status}: {reason}", f"See forager jobs show {job.id}")
