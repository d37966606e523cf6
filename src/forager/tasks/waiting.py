"""Why a task does not run now."""

from __future__ import annotations

from datetime import timedelta

from forager.hints import Hint, action
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.schedule import interval_after_change
from forager.tasks.store.reads import TaskConditions
from forager.tasks.task import Task, is_silent

MOST_AHEAD = 1_000

_WITH_WORKERS = {
    TaskStatus.QUEUED: "handed to the workers; the next that is free takes it",
    TaskStatus.CRAWLING: "being downloaded now",
    TaskStatus.DOWNLOADED: "downloaded; waits for a worker that parses",
    TaskStatus.PARSING: "being parsed now",
}


def why_not_now(task: Task, around: TaskConditions, every: timedelta) -> str | Hint:
    """One line; reasons that a user can fix come first. `every`: its interval."""
    if task.status in (TaskStatus.CRAWLING, TaskStatus.PARSING):
        return _WITH_WORKERS[task.status]
    if task.status is TaskStatus.FAILED:
        return Hint("failed; {} tries again", action("tasks recrawl", task.id))
    hint = _hold_hint(task)
    if hint is not None:
        return hint
    if not around.is_active:
        return Hint("its domain is disabled: {}", action("domains enable", task.domain))
    if task.status is TaskStatus.COMPLETED:
        return "done; waits for its next visit" + _sooner(task, every)
    is_waiting = task.status is not TaskStatus.PENDING or task.scheduled_at <= around.now
    if is_waiting and around.region is not None and not around.has_worker:
        return Hint(
            "waits for a worker of region {}, and none runs: {}",
            around.region,
            action("worker", region=around.region),
        )
    is_fetched = task.status is TaskStatus.DOWNLOADED
    if is_waiting and not is_fetched and around.wants_browser and not around.has_renderer:
        start = action("worker", render=True)
        return Hint("waits for a worker that renders, and none runs: {}", start)
    if is_waiting and not is_fetched and around.proxy_regions:
        unreachable = _waits_for_proxy(around.region, around.proxy_regions)
        if unreachable is not None:
            return unreachable
    if task.status is not TaskStatus.PENDING:
        return _WITH_WORKERS[task.status]
    return _why_pending(task, around)


def _sooner(task: Task, every: timedelta) -> str:
    if task.next_crawl_at is None or task.completed_at is None:
        return ""
    changed = task.next_crawl_at - task.completed_at == interval_after_change(every) < every
    return ", sooner: its price changed" if changed and not task.adapted_frequency else ""


def _hold_hint(task: Task) -> Hint | None:
    if task.all_hold is not None:
        resume = action("tasks resume", all=True)
    elif task.domain_hold is not None:
        resume = action("tasks resume", domain=task.domain)
    else:
        resume = action("tasks resume", task.id)
    return None if task.held_by is None else Hint("{}: {}", task.held_by, resume)


def _waits_for_proxy(region: str | None, proxy_regions: list[str | None]) -> Hint | None:
    tied = sorted(each for each in proxy_regions if each is not None)
    if len(tied) < len(proxy_regions):
        return None  # some are for all regions: no worker runs at all
    if region is not None:
        return Hint(
            "waits for a proxy of region {}, and all belong to others ({}): {}",
            region,
            ", ".join(tied),
            action("proxies set"),
        )
    return Hint(
        "waits for a worker with a proxy: all belong to {}, and no worker runs there: {}",
        ", ".join(tied),
        action("worker", region=tied[0]),
    )


def _why_pending(task: Task, around: TaskConditions) -> str | Hint:
    if task.scheduled_at > around.now:
        if task.retry_count:
            return f"waits before retry {task.retry_count} of {task.max_retries}"
        return "its time has not come"
    if is_silent(around.ticked_at, around.now):
        return Hint("due, but no scheduler runs: {} or {}", action("up"), action("scheduler"))
    if around.blocked_until is not None and task.domain_alarm is not None:
        return Hint(
            "due, but Forager has paused its domain (alarm: {}): {}",
            task.domain_alarm,
            action("domains resolve", task.domain),
        )
    if around.blocked_until is not None:
        return "due, but its host asked to be left alone for a while"
    return _waits_for_budget(around)


def _waits_for_budget(around: TaskConditions) -> str:
    pace = []
    if around.crawl_delay:
        pace.append(f"one request every {around.crawl_delay:g} s")
    if around.slow_delay > 0:
        pace.append(f"slowed down by {around.slow_delay:g} s")
    if around.ahead:
        number = f"{around.ahead}" if around.ahead < MOST_AHEAD else f"{MOST_AHEAD} or more"
        pace.append(f"{number} of its domain are ahead of it")
    return "due; waits for its domain's budget" + (f" ({', '.join(pace)})" if pace else "")
