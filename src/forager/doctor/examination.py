"""The examination of the doctor: machine, server and work, and a test job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from forager.checks import Examination, Level, Result, Topic, check, fail, failed_with
from forager.db.database import Database, Server, open_database, reach_server
from forager.db.schema import SCHEMA_VERSION
from forager.doctor.registry import checks_of
from forager.errors import ForagerError
from forager.jobs.job import Job, NewJob
from forager.jobs.kinds import load_kinds
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings


@check("database", Topic.SERVER, "All state is kept in this database.")
def check_reached(error: ForagerError) -> Result:
    """The database could not be reached, or was lost during the examination."""
    return failed_with(error)


async def examine(
    settings: Settings, examination: Examination, *, watch: Watch | None = None
) -> None:
    """Run the checks of machine, server and work. With `watch`, a real job runs as well."""
    await examination.run(checks_of(Topic.MACHINE), settings)
    if examination.level("server") is Level.FAIL:
        return
    try:
        # held to the end, so that an embedded server is started once
        with reach_server(settings) as reached:
            await _examine_database(reached, settings, examination)
            if watch is not None and examination.report().ok:
                examination.add(await run_trial(settings, watch))
    except ForagerError as error:
        examination.add(await check_reached(error))


async def _examine_database(reached: Server, settings: Settings, examination: Examination) -> None:
    async with Database(reached.url, name="forager doctor", pool_url=reached.pool_url) as database:
        await examination.run(checks_of(Topic.SERVER), database, settings)
        if examination.findings["schema"].message == SCHEMA_VERSION:
            await examination.run(checks_of(Topic.WORK), database, settings)


STEPS = 20
STEP_SECONDS = 0.05
LOOK_INTERVAL = 0.1
TRIAL_LIMIT = 60.0

Watch = Callable[[Job], None]


@check("job", Topic.WORK, "If a small job does not run, no other job will.")
async def run_trial(settings: Settings, watch: Watch) -> Result:
    """Run a selftest job to its end; `watch` sees it whenever it was looked at."""
    load_kinds(settings.job_modules)
    started = time.perf_counter()
    async with open_database(settings, name="forager doctor") as database:
        queue = Queue(database, settings)
        payload = {"steps": STEPS, "seconds": STEP_SECONDS}
        new = NewJob(kind="selftest", payload=payload, priority=1000, max_retries=0)
        job = (await queue.enqueue(new, actor="doctor")).job
        supervisor = Supervisor(database, settings, only=job.id)
        job = await _run_to_end(supervisor, queue, job, watch)
    if job.status is Status.COMPLETED:
        seconds = time.perf_counter() - started
        return f"ran through queue, supervisor and runner in {seconds:.1f} s"
    reason = job.error_message or job.stop_reason or "no reason given"
    return fail(f"{job.status}: {reason}", f"See forager jobs show {job.id}")


async def _run_to_end(supervisor: Supervisor, queue: Queue, job: Job, watch: Watch) -> Job:
    running = asyncio.ensure_future(supervisor.run())
    following = asyncio.ensure_future(_follow(queue, job.id, watch))
    try:
        # the supervisor ends before the job only by a bug, and that should be seen at once
        await asyncio.wait(
            {running, following}, timeout=TRIAL_LIMIT, return_when=asyncio.FIRST_COMPLETED
        )
        if following.done():
            return following.result()
        reason = f"took more than {TRIAL_LIMIT:g} s"
        return await queue.cancel(job.id, actor="doctor", reason=reason)
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
