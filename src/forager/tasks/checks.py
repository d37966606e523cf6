"""Checks of tasks: whether they are processed, and which of them need a person."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.checks import EXAMPLES, Result, Topic, check, warn
from forager.db.database import Database
from forager.jobs import workers
from forager.jobs.checks import START_WORKER
from forager.render.finding import INSTALL
from forager.settings import Settings
from forager.tasks.alarms import list_alarms
from forager.tasks.dead_letters import LetterFilter, group_letters
from forager.tasks.store import checks as store
from forager.tasks.store.activity import select_ticked_at
from forager.tasks.task import SILENT_AFTER

LISTED_GROUPS = 1000
MAX_WAITING = 1000  # the number that is counted up to
CAUSES = {
    "blocked": "wait for hosts that sent Retry-After",
    "slowed": "wait for hosts that are slowed down",
    "paced": "wait for the next slots of their hosts",
}


@check("tasks", Topic.WORK, "Products become stale: their prices may be outdated.")
async def check_tasks(database: Database, settings: Settings) -> Result:
    """Whether a scheduler and workers process the tasks that are due."""
    late = SILENT_AFTER.total_seconds()
    async with database.connection() as connection:
        causes = await store.select_late_causes(connection, late=late)
        ticked_at = await select_ticked_at(connection)
        found = await workers.select_workers(connection, stale_after=settings.stale_after)
    if not causes:
        return "none is late"
    message = f"{sum(causes.values())} have been due for more than {late:g} s"
    if ticked_at is None or datetime.now(UTC) - ticked_at > SILENT_AFTER:
        since = "ever" if ticked_at is None else f"since {ticked_at:%Y-%m-%d %H:%M} UTC"
        return warn(
            f"{message}, and no scheduler has looked {since}",
            "Start one: forager scheduler, or forager up.",
        )
    if not any(worker.role == "tasks" and worker.is_reachable for worker in found):
        return warn(f"{message}, and no worker for tasks runs", START_WORKER)
    if free := causes.get("free"):
        return warn(
            f"{message}, {free} of them at hosts with free slots: the workers are busy",
            "Start more workers, or raise task_concurrency.",
        )
    reasons = [f"{causes[cause]} {text}" for cause, text in CAUSES.items() if cause in causes]
    return f"{message}: {', '.join(reasons)}"


@check("regions", Topic.WORK, "Workers of other regions do not process this work.")
async def check_regions(database: Database, settings: Settings) -> Result:
    """Whether what is tied to a region, or can only go through its proxies, has a worker there."""
    unserved = await database.run(
        store.select_unserved_regions,
        stale_after=settings.stale_after,
        task_proxies=settings.task_proxies,
    )
    if not unserved:
        return "nothing waits for a worker of its region"
    waiting = [
        f"{domains} {'domain waits' if domains == 1 else 'domains wait'}"
        f" for a worker of region {region}"
        for region, domains in unserved[:EXAMPLES]
    ]
    return warn(", ".join(waiting), f"Start one: forager worker --region {unserved[0][0]}")


@check("rendering", Topic.WORK, "Pages that need a browser are not visited.")
async def check_renderers(database: Database, settings: Settings) -> Result:
    """Whether crawls and tasks that need a browser have a worker with one."""
    waiting = await database.run(store.count_waiting_for_browser, stale_after=settings.stale_after)
    if not waiting:
        return "no crawl or task waits for a worker that renders"
    number = f"{waiting}" if waiting < MAX_WAITING else f"{MAX_WAITING} or more"
    return warn(
        f"{number} {'crawl or task waits' if waiting == 1 else 'crawls or tasks wait'}"
        " for a worker that renders",
        f"Start one where a browser is installed: forager worker --render. {INSTALL}",
    )


@check("dead_letters", Topic.WORK, "They are retried only by hand.")
async def check_dead_letters(database: Database, _settings: Settings) -> Result:
    groups = await group_letters(database, LetterFilter(), limit=LISTED_GROUPS)
    if not groups:
        return "none"
    return warn(
        "permanently failed tasks",
        "See forager dead-letters list, then retry or drop them.",
        found=[f"{group.domain}: {group.message} ({group.count})" for group in groups],
        count=sum(group.count for group in groups),
    )


@check(
    "domain_alarms",
    Topic.WORK,
    "Results of a domain that suddenly answers with wrong pages are withheld.",
)
async def check_alarms(database: Database, _settings: Settings) -> Result:
    alarms = await list_alarms(database)
    if not alarms:
        return "none"
    return warn(
        "domains whose results are withheld",
        "See forager domains alarms, then accept or discard them with forager domains resolve.",
        found=[f"{alarm.domain} ({alarm.reason})" for alarm in alarms],
    )
