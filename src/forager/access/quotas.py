"""What each owner may use, and whether there is room for one more job."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from forager.access import store
from forager.access.caller import Caller, QuotaExceeded
from forager.access.quota import NO_QUOTA, PageGrant, Quota, QuotaUsage
from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotAllowed
from forager.hints import Hint, Option
from forager.jobs.queue import merge_payload

# when another job may have ended
JOB_RETRY_AFTER = 30.0
LARGEST = 2**31 - 1
LARGEST_PAGES = 2**63 - 1


async def get_quota(database: Database, user_id: UUID) -> Quota:
    """The limits of an owner, which may be none."""
    async with database.connection() as connection:
        return await store.select_quota(connection, user_id) or NO_QUOTA


async def get_usage(database: Database, user_id: UUID) -> QuotaUsage:
    """What an owner uses of its quota now."""
    return await database.run(store.select_usage, user_id)


async def set_quota(database: Database, user_id: UUID, quota: Quota) -> Quota:
    """Set all limits of an owner; those that are None are lifted."""
    await database.run(store.upsert_quota, user_id, _checked(quota))
    return quota


async def admit_job(connection: Connection, caller: Caller, source_id: str) -> int | None:
    """How many pages a new job of this source may fetch at most; raises if there is no room.

    Part of the transaction that adds the job: owners with a limit are counted one request at a
    time, so that two requests cannot share the last place.
    """
    if not caller.is_admin:
        owner = await store.select_source_owner(connection, source_id)
        if owner is not None and not caller.sees(owner[0]):
            raise taken(source_id)
    limits = [caller.quota.pages_per_job]
    if caller.user_id is not None and caller.quota.limits_jobs:
        await store.lock_owner(connection, caller.user_id)
        usage = await store.select_usage(connection, caller.user_id)
        limits.append(_room(caller.quota, usage))
    return _least(limits)


async def readmit_job(connection: Connection, caller: Caller, job_id: UUID) -> PageGrant | None:
    """How much a resumed job may fetch from now on; None: as much as before.

    Part of the transaction that resumes it, and after `lock_owner`. What it fetched on earlier
    days does not count again.
    """
    quota = caller.quota
    if caller.user_id is None or not quota.limits_pages_or_jobs:
        return None
    others = await store.select_usage(connection, caller.user_id, apart_from=job_id)
    job = await store.select_spending(connection, job_id)
    used = replace(others, pages_today=others.pages_today + job.pages_today)
    left = _room(quota, used)
    bound = _least([quota.pages_per_job, None if left is None else job.pages + left])
    if bound is None:
        return None
    return PageGrant(max(1, bound), job.today, job.pages - job.pages_today)


async def grant_pages(connection: Connection, job_id: UUID, grant: PageGrant) -> None:
    """Store in a job how many pages its owner may fetch today."""
    granted = {
        "granted_pages": grant.pages,
        "granted_on": grant.day.isoformat(),
        "spent_before": grant.spent_before,
    }
    await merge_payload(connection, job_id, granted)


async def lock_owner(connection: Connection, caller: Caller) -> None:
    """To be locked before the rows of jobs, as when a job is added."""
    if caller.user_id is not None:
        await store.lock_owner(connection, caller.user_id)


async def lack_of_room(database: Database, user_id: UUID) -> QuotaExceeded | None:
    """Why an owner could not begin a job now."""
    quota = await get_quota(database, user_id)
    if quota.limits_jobs:
        try:
            _room(quota, await get_usage(database, user_id))
        except QuotaExceeded as lack:
            return lack
    return None


def taken(source_id: str) -> NotAllowed:
    """The names of sources are shared by all owners: one of them has it."""
    return NotAllowed(
        f"the name {source_id} is taken by a source of another owner",
        hint=Hint("Set another name with {}.", Option("source")),
    )


def _room(quota: Quota, usage: QuotaUsage) -> int | None:
    """The pages that are left for today."""
    if quota.active_jobs is not None and usage.active_jobs >= quota.active_jobs:
        raise QuotaExceeded(
            f"{usage.active_jobs} of {quota.active_jobs} active jobs are in use",
            what="active_jobs",
            used=usage.active_jobs,
            limit=quota.active_jobs,
            retry_after=JOB_RETRY_AFTER,
            hint="Wait for one to end, or cancel one.",
        )
    if quota.pages_per_day is None:
        return None
    left = quota.pages_per_day - usage.pages_today
    if left <= 0:
        raise QuotaExceeded(
            f"{usage.pages_today} of the {quota.pages_per_day} pages of today are used up, or"
            " promised to running jobs",
            what="pages_per_day",
            used=usage.pages_today,
            limit=quota.pages_per_day,
            retry_after=usage.seconds_left_today,
            hint="The day ends at midnight UTC; a running job gives back what it does not need.",
        )
    return left


def _least(limits: list[int | None]) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _checked(quota: Quota) -> Quota:
    rules = {
        "active_jobs": (0, LARGEST),
        "pages_per_job": (1, LARGEST_PAGES),
        "pages_per_day": (0, LARGEST_PAGES),
        "requests_per_minute": (1, LARGEST),
    }
    for name, (least, most) in rules.items():
        value = getattr(quota, name)
        if value is not None and not least <= value <= most:
            raise InvalidInput(f"{name} must be from {least} to {most}, not {value}")
    return quota
