"""Slow down, pause or stop everything that is done at a host: its crawls and its tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from forager.access.caller import Caller
from forager.crawl.admission import move_job
from forager.db.database import Database
from forager.fetch.domains import Domain
from forager.fetch.domains.service import MAX_DELAY, Domains
from forager.jobs.job import Job, Move, move_each
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.operations.operation import Context
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.selection import Selection

# seconds between requests; a host that has a longer delay gets twice that
SLOW_DELAY = 10.0
AT_ONCE = 100


class Traffic(StrEnum):
    """What can be done with all crawls and tasks of a host."""

    RESUME = "resume"
    SLOW = "slow"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class TrafficChange:
    """The domain afterwards, and the numbers of crawls that were paused or resumed or refused."""

    domain: Domain
    jobs: int
    refused: int


async def set_traffic(
    database: Database, settings: Settings, caller: Caller, host: str, traffic: Traffic
) -> TrafficChange:
    """Change what is sent to a host from now on; running requests are finished.

    Pause: crawls that began at the host and its tasks wait. Stop: tasks in progress are withdrawn
    as well. Slow: a longer delay, for crawls of other hosts too. Resume lifts the hold and the
    longer delay; the delay that is set for the domain was never changed.
    """
    domains = Domains(database)
    domain = await domains.get(host)
    name = domain.domain_name
    queue = Queue(database, settings)
    if traffic is Traffic.SLOW:
        delay = max(SLOW_DELAY, min(2 * (domain.crawl_delay_seconds or 0.0), MAX_DELAY))
        return TrafficChange(await domains.set_traffic_delay(name, delay), 0, 0)
    await _hold(Holds(database), name, traffic)
    resumes = traffic is Traffic.RESUME
    statuses = [Status.PAUSED] if resumes else [Status.PENDING, Status.PROCESSING]
    jobs = [job async for job in _jobs(queue, name, statuses, caller)]
    move = Move.RESUME if resumes else Move.PAUSE
    context = Context(database, settings, caller=caller)
    moved = await move_each(
        [job.id for job in jobs], lambda job_id: move_job(context, job_id, move, f"all of {name}")
    )
    refused = sum(each.error is not None for each in moved)
    if resumes:
        await domains.set_traffic_delay(name, None)
    return TrafficChange(await domains.get(name), len(moved) - refused, refused)


async def _hold(holds: Holds, name: str, traffic: Traffic) -> None:
    moves = {Traffic.RESUME: holds.resume, Traffic.PAUSE: holds.pause, Traffic.STOP: holds.stop}
    await moves[traffic](Selection(domain=name))


async def _jobs(
    queue: Queue, host: str, statuses: list[Status], caller: Caller
) -> AsyncIterator[Job]:
    """Jobs of a host; those that are moved meanwhile do not change the order of the others."""
    cursor = None
    while True:
        found = await queue.list_jobs(
            statuses=statuses, host=host, user_id=caller.sees_only, cursor=cursor, limit=AT_ONCE
        )
        for job in found.items:
            yield job
        if (cursor := found.next_cursor) is None:
            return
