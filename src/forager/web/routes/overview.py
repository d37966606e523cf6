"""The overview, workers and background services."""

from __future__ import annotations

from forager.jobs.workers import list_workers, running_jobs
from forager.services.report import list_service_processes
from forager.settings import config_file
from forager.settings.shown import setting_words, shown_settings
from forager.tasks.activity import MOST_ERRORS, MOST_WAITING
from forager.web.charts import Series
from forager.web.overview import MINUTES, Overview, load_overview, shown_state
from forager.web.page import Page, asked, new_router, page
from forager.web.visit import Administers, Operates, Reads

router = new_router()

SHOWN_KINDS = 10
TICKS = ("60 min ago", "40", "20", "now")
NAMES = [f"{ago} min ago" if ago else "this minute" for ago in reversed(range(MINUTES))]


@page(router, "/")
async def overview(visit: Reads) -> Page:
    found = await load_overview(visit)
    if found.is_new:
        return Page("first_run.html")
    return Page(
        "overview.html",
        {
            "overview": found,
            "rate": _rate(found),
            "backlog": _backlog(found),
            "ticks": TICKS,
            "names": NAMES,
            "shown_kinds": SHOWN_KINDS,
            "most_waiting": MOST_WAITING,
            "most_errors": MOST_ERRORS,
        },
    )


def _rate(found: Overview) -> list[Series]:
    pace, tasks = found.hour.pace, found.hour.tasks
    lines = [Series("URLs of crawls", pace.settled, "a")]
    if found.tasks.any_tasks:
        lines.append(Series("task attempts", tasks.attempts, "b"))
    failed = [a + b for a, b in zip(pace.failed, tasks.failed, strict=True)]
    return [*lines, Series("failed", failed, "d")] if any(failed) else lines


def _backlog(found: Overview) -> list[Series]:
    lines = [Series("unfinished jobs", found.hour.history.active, "a")]
    if found.tasks.any_tasks:
        lines.append(Series("waiting tasks", found.hour.tasks.backlog, "b"))
    return lines


@page(router, "/workers")
async def workers(visit: Operates) -> Page:
    found = await list_workers(visit.here.database)
    rows = [(worker, shown_state(worker, visit.here.settings.stale_after)) for worker in found]
    processes = await list_service_processes(visit.here.database, visit.here.settings)
    return Page(
        "workers.html",
        {
            "rows": rows,
            "processes": processes,
            "jobs": await running_jobs(visit.here.database),
            "tasks": await visit.here.tasks.in_progress(),
        },
    )


@page(router, "/settings")
async def settings(visit: Administers) -> Page:
    file = config_file().absolute()
    shown = shown_settings(visit.here.settings)
    wanted = asked(visit).text("changed")
    return Page(
        "settings.html",
        {
            "settings": [each for each in shown if not wanted or each.origin != "default"],
            "changed": sum(each.origin != "default" for each in shown),
            "total": len(shown),
            "only_changed": bool(wanted),
            "file": file if file.exists() else None,
            "words": setting_words,
        },
    )
