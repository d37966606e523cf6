"""The work: who is there to do it, and what lies about."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.db.database import Database
from forager.doctor.check import Check, ok, warn
from forager.jobs import store, workers
from forager.jobs.lifecycle import Status
from forager.settings import Settings


async def check_workers(database: Database, settings: Settings) -> Check:
    async with database.connection() as connection:
        found = await workers.select_workers(connection)
        waiting = dict(await store.count_jobs(connection)).get(Status.PENDING, 0)
    now = datetime.now(UTC)
    silent = [w for w in found if (now - w.last_seen).total_seconds() > settings.stale_after]
    complaints = [w.note for w in found if w.note]
    living = len(found) - len(silent)
    finding = f"{living} running, {waiting} jobs waiting"
    if complaints:
        return warn("workers", f"{finding}; one says: {complaints[0]}", "Update that worker.")
    if silent:
        names = ", ".join(f"{w.host} (pid {w.pid})" for w in silent[:3])
        return warn("workers", f"{finding}; not heard of: {names}", "Start that worker again.")
    if waiting and not living:
        return warn("workers", finding, "Start one: forager worker, or forager up.")
    return ok("workers", finding)


async def check_stale_jobs(database: Database, settings: Settings) -> Check:
    async with database.connection() as connection:
        stale = await store.select_stale(connection, stale_after=settings.stale_after)
    if stale:
        return warn(
            "stale jobs",
            f"{len(stale)} jobs of workers that died",
            "Any worker takes them soon; at once: forager watchdog --once",
        )
    return ok("stale jobs", "none")
