"""Hosts of which some pages, or all, fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crawl.crawling import Crawls
from forager.fetch.budgets.accounts import DomainAccount
from forager.processes.control import StopCause
from servers.site import Page, Site, html

GOOD, BROKEN = 400, 6
DELAY = 0.02
RETRIES = 3


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of all answers of the database, as long as the test runs."""
    seen: list[float] = []
    learn = DomainAccount.learn

    def learn_and_note(self: DomainAccount, wanted: Any, given: Any, *rest: Any) -> None:
        seen.append(given.delay)
        learn(self, wanted, given, *rest)

    monkeypatch.setattr(DomainAccount, "learn", learn_and_note)
    return seen


@pytest.mark.timeout(400)
async def test_a_few_broken_pages_do_not_starve_two_crawls(
    crawls: Crawls, site: Site, delays: list[float]
) -> None:
    good = [f"/good/{n}" for n in range(GOOD)]
    broken = [f"/broken/{n}" for n in range(BROKEN)]
    site.pages["/"] = html("Start", [*broken[:3], *good, *broken[3:]])
    site.pages |= {path: html(f"Page {path}") for path in good}
    site.pages |= {path: Page(b"", "503 Service Unavailable") for path in broken}
    options: dict[str, Any] = {"delay": DELAY, "retries": RETRIES, "retry_delay": 1.0}
    crawled = await asyncio.gather(*(crawls.run(f"{site.url}/", **options) for _ in range(2)))
    for each in crawled:
        assert each.job.stop_reason == "finished"
        assert each.pages(site.url) == {"/", *good}
        failed = {url: row for url, row in each.visited.items() if row.outcome == "failed"}
        assert {url.removeprefix(site.url) for url in failed} == set(broken)
        assert {row.reason for row in failed.values()} == {"http_503"}
    assert all(site.hits[path] == 2 * (1 + RETRIES) for path in broken)
    assert all(site.hits[path] == 2 for path in good)
    # slowed down by single failures, the host would get a request every 16 s
    assert max(delays) <= 2 * DELAY
    [[left]] = await crawls.sql("SELECT count(*) FROM domain_permits")
    assert left == 0


async def test_a_host_that_only_fails_is_backed_off_from(
    crawls: Crawls, site: Site, delays: list[float]
) -> None:
    paths = [f"/{n}" for n in range(200)]
    site.pages["/"] = html("Start", paths)
    site.pages |= {path: Page(b"", "503 Service Unavailable") for path in paths}
    job_id = await crawls.ask(f"{site.url}/", delay=0.05, retries=0)
    running = asyncio.create_task(crawls.go_on(job_id))
    while max(delays, default=0.0) < 4 and not running.done():
        await asyncio.sleep(0.1)
    assert crawls.context is not None
    crawls.context.ask_to_stop(StopCause.SHUTDOWN)
    await running
    assert max(delays) >= 4
    assert len(site.log) < 80  # of 200: those that were under way, and ever fewer
