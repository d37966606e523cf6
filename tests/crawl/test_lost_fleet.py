"""Fifty crawls in one runner that is killed or frozen: only pages under way are fetched again."""

from __future__ import annotations

import signal
from collections import Counter

import psutil
import pytest

from crawl.crawling import Crawls
from crawl.test_kills import working
from forager.jobs.lifecycle import FINISHED, Status
from servers.site import Site, html
from support.waiting import eventually

CRAWLS = 50
PAGES = 6


def build(site: Site) -> None:
    for crawl in range(CRAWLS):
        links = [f"/{crawl}/{page}" for page in range(1, PAGES)]
        site.pages[f"/{crawl}/"] = html(f"Start {crawl}", links)
        site.pages |= {link: html(f"Page {link}") for link in links}
    site.delay = 0.02


def pages_of(site: Site) -> Counter[str]:
    return Counter(each.target for each in site.log if each.target in site.pages)


@pytest.mark.long
@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_lost_runner_costs_fifty_crawls_no_page_and_no_retry(
    crawls: Crawls, site: Site, fault: signal.Signals
) -> None:
    build(site)
    settings = crawls.settings.model_copy(update={"worker_runners": 1, "stall_limit": 3.0})
    ids = [
        await crawls.ask(f"{site.url}/{crawl}/", scope="prefix", concurrency=1)
        for crawl in range(CRAWLS)
    ]

    async def half_is_committed() -> bool:
        [[pages]] = await crawls.sql("SELECT count(*) FROM crawl_visited")
        return bool(pages >= CRAWLS)

    async def was_requeued() -> bool:
        found = await crawls.sql("SELECT 1 FROM job_events WHERE move = 'requeue' LIMIT 1")
        return bool(found)

    async def all_ended() -> bool:
        rows = await crawls.sql("SELECT DISTINCT status::text FROM crawl_jobs")
        return {Status(row[0]) for row in rows} <= FINISHED

    with working(settings) as worker:
        await eventually(half_is_committed)
        [runner] = [
            child
            for child in psutil.Process(worker.process.pid).children()
            if "forager.jobs" in child.cmdline()
        ]
        runner.send_signal(fault)
        [[committed]] = await crawls.sql("SELECT count(*) FROM crawl_visited")
        under_way = pages_of(site).total() - committed
        await eventually(was_requeued)
        await eventually(all_ended)
    for job_id in ids:
        crawled = await crawls.look(job_id)  # also checks its ledger
        assert crawled.job.status is Status.COMPLETED
        assert (crawled.ledger["fetched"], crawled.ledger["pending"]) == (PAGES, 0)
        assert crawled.job.retry_count == 0
    hits = pages_of(site)
    assert set(hits) == set(site.pages)
    assert hits.total() - len(hits) <= under_way
