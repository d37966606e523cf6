"""What a crawl waits for, as its report says it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.contextvars import bound_contextvars

from crawl.crawling import Crawls
from forager.crawl.ledger import CrawlState, Ledger
from forager.crawl.reports.activity import Activity
from forager.crawl.reports.report import CrawlReport, CrawlWait, crawl_report, wait_from
from forager.crawl.settlement import Outcome
from forager.jobs.kinds import Stopped
from forager.jobs.lifecycle import Status
from forager.logs import configure_logs, kept_lines
from forager.processes.control import StopCause
from servers.site import Page, Site, html


def test_a_crawl_without_pages_has_made_no_progress() -> None:
    ledger = Ledger(pending=2)
    ledger.settle(Outcome.FAILED, "timeout")
    assert ledger.percentage(None) == 0
    ledger.settle(Outcome.FETCHED, None)
    assert ledger.percentage(None) == 99


async def report_while_running(
    crawls: Crawls, url: str, *, elapsed: float = 0.0, **options: Any
) -> CrawlReport:
    """The first report of a running crawl that waits; the crawl is stopped then.

    If `elapsed` is given, the report after the crawl has written that it took so long.
    """
    job_id = await crawls.ask(url, **options)
    running = asyncio.create_task(crawls.go_on(job_id))
    while True:
        report = await crawl_report(crawls.database, crawls.queue, job_id)
        if (report.wait is not None and report.job.status is Status.PROCESSING) or running.done():
            break
        await asyncio.sleep(0.05)
    assert crawls.context is not None
    if elapsed:
        unused: Any = None
        activity = Activity(crawls.context, CrawlState(seconds=elapsed), unused, unused)
        await activity.leave(Stopped())
        report = await crawl_report(crawls.database, crawls.queue, job_id)
    crawls.context.ask_to_stop(StopCause.SHUTDOWN)
    await running
    return report


async def test_a_slow_host_is_named_while_nothing_is_committed(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/a", "/b"])
    report = await report_while_running(crawls, f"{site.url}/", delay=40.0)
    assert report.wait is not None
    host = site.url.removeprefix("http://")
    assert report.wait.message.startswith(f"rate-limited by {host} (one request every 40 s), next")
    assert report.pace is not None


async def test_a_robots_txt_that_fails_is_named(crawls: Crawls, site: Site) -> None:
    site.pages["/robots.txt"] = Page(b"", "500 Broken")
    report = await report_while_running(crawls, f"{site.url}/")
    assert report.wait is not None
    assert report.wait.message.startswith("robots.txt answered 500, next request in ")


async def test_time_without_commits_is_part_of_the_duration(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start", ["/a", "/b"])
    report = await report_while_running(crawls, f"{site.url}/", delay=40.0, elapsed=1000.0)
    assert report.seconds == 1000.0


async def test_the_log_lines_of_a_run_that_failed_end_with_its_error(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/"] = html("Start")

    async def broken(_: object) -> None:
        raise RuntimeError("the seeds cannot be read")

    monkeypatch.setattr("forager.crawl.job._Crawl.run", broken)
    configure_logs("info")
    job_id = await crawls.ask(f"{site.url}/")
    with kept_lines(str(job_id)), bound_contextvars(job=str(job_id)):
        await crawls.go_on(job_id)
    report = await crawl_report(crawls.database, crawls.queue, job_id)
    assert report.log_lines[-1]["level"] == "error"
    assert report.log_lines[-1]["text"].startswith(
        "run failed (error RuntimeError: the seeds cannot be read"
    )


async def test_a_job_that_is_put_off_says_why_and_until_when(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = Page(b"", "503 Busy", {"Retry-After": "600"})
    crawled = await crawls.run(f"{site.url}/")
    assert crawled.job.status is Status.PENDING
    assert crawled.report["waiting"].endswith(" min")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "busy"),
        (-3.0, "busy"),  # never a time in the past
        (4.2, "busy, next request in 4 s"),
        (600.0, "busy, next request in 10 min"),
        (7300.0, "busy, next request in 2 h"),
    ],
)
def test_words(seconds: float | None, words: str) -> None:
    assert CrawlWait("busy", seconds).message == words


def test_an_old_report_says_nothing() -> None:
    row = {"waits_for": "busy", "waits_in": 3.0, "starts_in": -1.0, "is_reported": False}
    assert wait_from(Status.PROCESSING, row) is None
    assert wait_from(Status.COMPLETED, {**row, "is_reported": True}) is None
    assert wait_from(Status.PENDING, row) == CrawlWait("waiting for a worker")
