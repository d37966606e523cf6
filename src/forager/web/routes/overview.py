"""The overview, workers and background services."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from forager.jobs.workers import list_workers, running_jobs
from forager.services.report import list_service_processes
from forager.settings import config_file
from forager.settings.loading import setting_text, shown_settings
from forager.tasks.activity import MOST_ERRORS, MOST_WAITING
from forager.web.charts import Series
from forager.web.formats import duration
from forager.web.overview import MINUTES, Overview, load_overview
from forager.web.page import WebPage, new_router, page
from forager.web.visit import AdminVisit, OperatorVisit, ReaderVisit

router = new_router()

SHOWN_KINDS = 10
# points of a chart, for any time range
POINTS = 60
# time ranges of the charts, in minutes
RANGES = {60: "last hour", 360: "last 6 hours", 1440: "last 24 hours"}


@page(router, "/")
async def overview(visit: ReaderVisit) -> WebPage:
    wanted = visit.asked.text("range")
    minutes = next((each for each in RANGES if str(each) == wanted), MINUTES)
    found = await load_overview(visit, minutes)
    times = _times(found.shown.at or datetime.now(UTC), minutes)
    if found.is_new:
        return WebPage("first_run.html")
    return WebPage(
        "overview.html",
        overview=found,
        rate=_rate(found, times),
        backlog=_backlog(found, times),
        ticks=[*(f"{duration(20 * minutes * part)} ago" for part in (3, 2, 1)), "now"],
        times=times,
        range_name=RANGES[minutes],
        ranges=[(f"/?range={each}", name, each == minutes, None) for each, name in RANGES.items()],
        shown_kinds=SHOWN_KINDS,
        most_waiting=MOST_WAITING,
        most_errors=MOST_ERRORS,
    )


def _times(now: datetime, minutes: int) -> list[datetime]:
    """The end of each point."""
    width = timedelta(minutes=minutes) / POINTS
    return [now - ago * width for ago in reversed(range(POINTS))]


def _rate(found: Overview, times: Sequence[datetime]) -> list[Series]:
    """Numbers per minute, as they were stored; those of the present minute are not yet."""
    crawled, failures = [0.0] * POINTS, [0.0] * POINTS
    width = times[1] - times[0]
    for sample in found.shown.crawled:
        place = _place(sample.at, times)
        crawled[place] += sample.settled * timedelta(minutes=1) / width
        failures[place] += sample.failed * timedelta(minutes=1) / width
    crawled[-1] = max(crawled[-1], found.shown.rate * 60)
    lines = [Series("URLs of crawls", crawled, "a")]
    tasks = found.shown.tasks
    if found.tasks.any_tasks:
        lines.append(Series("task attempts", _means(tasks.attempts), "b"))
    failed = [a + b for a, b in zip(failures, _means(tasks.failed), strict=True)]
    return [*lines, Series("failed", failed, "d")] if any(failed) else lines


def _place(at: datetime, times: Sequence[datetime]) -> int:
    """The point that a sample belongs to."""
    ago = max(timedelta(), times[-1] - at) // (times[1] - times[0])
    return max(0, len(times) - 1 - ago)


def _means(by_minute: Sequence[float]) -> list[float]:
    """The mean of the minutes of each point."""
    width = len(by_minute) // POINTS
    return [sum(by_minute[at : at + width]) / width for at in range(0, len(by_minute), width)]


def _backlog(found: Overview, times: Sequence[datetime]) -> list[Series]:
    """The last sample of each point, and the present numbers; no line where none was stored."""
    shown = found.shown
    jobs: list[float | None] = [None] * len(times)
    tasks: list[float | None] = [None] * len(times)
    for sample in shown.backlog:
        place = _place(sample.at, times)
        jobs[place], tasks[place] = sample.jobs, sample.tasks
    jobs[-1], tasks[-1] = shown.active, shown.tasks.total_waiting
    lines = [Series("unfinished jobs", jobs, "a")]
    return [*lines, Series("waiting tasks", tasks, "b")] if found.tasks.any_tasks else lines


@page(router, "/workers")
async def workers(visit: OperatorVisit) -> WebPage:
    processes = await list_service_processes(visit.database, visit.settings)
    return WebPage(
        "workers.html",
        workers=await list_workers(visit.database, visit.settings),
        processes=processes,
        jobs=await running_jobs(visit.database, user_id=visit.caller.sees_only),
        tasks=await visit.tasks.in_progress(),
    )


@page(router, "/settings")
async def settings(visit: AdminVisit) -> WebPage:
    file = config_file().absolute()
    shown = shown_settings(visit.settings)
    wanted, words = visit.asked.text("changed"), visit.asked.text("q").lower().split()
    return WebPage(
        "settings.html",
        settings=[
            each
            for each in shown
            if (not wanted or each.origin != "default")
            and all(word in f"{each.name} {each.description}".lower() for word in words)
        ],
        changed=sum(each.origin != "default" for each in shown),
        total=len(shown),
        only_changed=bool(wanted),
        file=file if file.exists() else None,
        setting_text=setting_text,
    )
