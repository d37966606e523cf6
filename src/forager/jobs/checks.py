"""Checks of workers and jobs."""

from __future__ import annotations

from collections import Counter

from forager import __version__
from forager.amounts import counted
from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.jobs import workers
from forager.jobs.lifecycle import Status
from forager.jobs.store import checks as store
from forager.jobs.store import moves, reads
from forager.settings import Settings

LONG_WAIT = 3600.0
START_WORKER = "Start one: forager worker, or forager up."


@check("versions", Topic.WORK, "Workers of different versions write different things.")
async def check_versions(database: Database, settings: Settings) -> Result:
    found = await workers.list_workers(database, settings)
    others = sorted({worker.version for worker in found if worker.is_reachable} - {__version__})
    if others:
        return warn(
            f"Forager {__version__} here, and workers of {', '.join(others)}",
            "Update and restart them; see docs/howto/operate.md for the order.",
        )
    return f"Forager {__version__}, and so are all workers"


@check("workers", Topic.WORK, "Without a worker nothing is fetched.")
async def check_workers(database: Database, settings: Settings) -> Result:
    async with database.connection() as connection:
        found = await workers.select_workers(connection, stale_after=settings.stale_after)
        waiting = dict(await reads.count_jobs(connection)).get(Status.PENDING, 0)
    reachable = [worker for worker in found if worker.is_reachable]
    roles = Counter(worker.role for worker in reachable)
    message = f"{roles['jobs']} for jobs, {roles['tasks']} for tasks; {counted(waiting, 'job')}"
    message += " waiting"
    if notes := [worker.note for worker in reachable if worker.note]:
        return warn(f"{message}; one says: {notes[0]}", "Update that worker.")
    if brakes := [worker.brake for worker in reachable if worker.brake]:
        message = f"{message}; one claims no more jobs: {brakes[0]}"
        return warn(message, "Start another worker, or wait.") if waiting else message
    if lost := [f"{each.host} (pid {each.pid})" for each in found if not each.is_reachable]:
        return warn(f"{message}; unreachable workers", "Start that worker again.", found=lost)
    return warn(message, START_WORKER) if waiting and not roles["jobs"] else message


@check("stale_jobs", Topic.WORK, "They wait until another worker takes them over.")
async def check_stale_jobs(database: Database, settings: Settings) -> Result:
    stale = await database.run(moves.select_stale, stale_after=settings.stale_after)
    if not stale:
        return "none"
    return warn(
        "jobs of workers that died",
        "Any worker takes them soon; at once: forager watchdog --once",
        count=len(stale),
    )


@check("stuck_jobs", Topic.WORK, "A job that commits nothing holds its place and its source.")
async def check_stuck_jobs(database: Database, settings: Settings) -> Result:
    """Jobs whose runner lives and does nothing; a supervisor kills it at the progress limit."""
    stuck = await database.run(store.select_still_jobs, still_for=settings.progress_limit)
    if not stuck:
        return "none"
    return warn(
        f"jobs that have committed nothing for more than {settings.progress_limit:g} s",
        f"See forager jobs show {stuck[0][0]}; its worker should have ended it: restart that.",
        found=[f"{job} ({seconds:.0f} s)" for job, seconds in stuck],
    )


@check("waiting_jobs", Topic.WORK, "They were requested, and no worker runs them.")
async def check_waiting_jobs(database: Database, _settings: Settings) -> Result:
    oldest = await database.run(store.select_oldest_due)
    if oldest is None:
        return "none"
    message = f"the oldest has waited for {oldest:.0f} s"
    if oldest <= LONG_WAIT:
        return message
    return warn(
        message, "Start more workers, or raise worker_capacity; forager jobs list shows the queue."
    )
