"""The examination: all checks, in an order in which each relies on those before; a test job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from uuid import UUID

from forager.db.database import Database, Server, open_database, reach_server
from forager.db.schema import SCHEMA_VERSION
from forager.doctor import archive, machine, server, work
from forager.doctor.check import DATABASE, Check, Level, Verdict, check, fail, failed_with
from forager.errors import ForagerError
from forager.jobs.job import Job, NewJob
from forager.jobs.kinds import load_kinds
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Dispatch, Search, Settings


async def examine(
    settings: Settings, report: Callable[[Check], None], *, watch: Watch | None = None
) -> list[Check]:
    """Run all checks; `report` gets each finding at once. With `watch`, a real job runs as well."""
    checks: list[Check] = []

    def note(check: Check) -> Level:
        checks.append(check)
        report(check)
        return check.level

    for examine_part in FIRST_CHECKS:
        note(await examine_part(settings))
    if note(await server.check_server(settings)) is not Level.FAIL:
        try:
            # held to the end, so that an embedded server is started once
            with reach_server(settings) as reached:
                await _examine_database(reached, settings, note)
                if watch is not None and not any(c.level is Level.FAIL for c in checks):
                    note(await run_trial(settings, watch))
        except ForagerError as error:
            note(DATABASE.found(failed_with(error)))
    return checks


async def _examine_database(
    reached: Server, settings: Settings, note: Callable[[Check], Level]
) -> None:
    async with Database(reached.url, name="forager doctor", pool_url=reached.pool_url) as database:
        if note(await server.check_connection(database, settings)) is Level.FAIL:
            return
        if database.pool_url is not None:
            note(await server.check_pool(database, settings))
        version = await server.check_schema(database, settings)
        note(version)
        checks = [*SERVER_CHECKS]
        if version.finding == SCHEMA_VERSION:
            checks += _work_checks(settings)
        for examine_part in checks:
            note(await examine_part(database, settings))


FIRST_CHECKS = (
    machine.check_python,
    machine.check_home,
    machine.check_permissions,
    machine.check_space,
    machine.check_open_files,
    machine.check_memory,
    server.check_browser,
    archive.check_storage,
    archive.check_archive_space,
    machine.check_exposure,
    machine.check_traces,
)
DatabaseCheck = Callable[[Database, Settings], Awaitable[Check]]

SERVER_CHECKS: tuple[DatabaseCheck, ...] = (
    server.check_clock,
    server.check_notifications,
    server.check_connections,
    server.check_vacuum,
    server.check_transactions,
)


def _work_checks(settings: Settings) -> Iterator[DatabaseCheck]:
    """The checks of everything that is configured."""
    yield machine.check_versions
    yield work.check_workers
    yield work.check_services
    yield work.check_stale_jobs
    yield work.check_stuck_jobs
    yield work.check_waiting_jobs
    yield work.check_tasks
    yield work.check_regions
    yield work.check_renderers
    if settings.dispatch is Dispatch.CELERY:
        yield server.check_broker
    if settings.search is Search.OPENSEARCH:
        yield server.check_search
    if settings.clickhouse_url is not None:
        yield archive.check_clickhouse
    yield work.check_dead_letters
    yield work.check_alarms
    yield work.check_bypassed
    yield work.check_rates
    yield work.check_proxies
    yield work.check_webhooks
    yield work.check_parsers
    yield archive.check_archive
    yield machine.check_keys


STEPS = 20
STEP_SECONDS = 0.05
LOOK_INTERVAL = 0.1
TRIAL_LIMIT = 60.0

Watch = Callable[[Job], None]


@check("job", "If a small job does not run, no other job will.")
async def run_trial(settings: Settings, watch: Watch, *, limit: float = TRIAL_LIMIT) -> Verdict:
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
    if job.status is Status.COMPLETED:
        seconds = time.perf_counter() - started
        return f"ran through queue, supervisor and runner in {seconds:.1f} s"
    reason = job.error_message or job.stop_reason or "no reason given"
    return fail(f"{job.status}: {reason}", f"See forager jobs show {job.id}")


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
