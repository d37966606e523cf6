"""The throughput chart of a job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crawl.test_minutes import start
from forager.crawl.reports.minutes import CrawlMinute
from forager.crawl.reports.report import CrawlPace
from forager.db.database import Database
from forager.jobs.queue import Queue
from forager.web.job_view import CrawlGrowth, Throughput
from support.sql import execute
from web.visitor import Visitor


def chart(settled: list[float], failed: list[float]) -> Throughput:
    return Throughput(CrawlPace(2.0, settled, failed, estimated=False), is_over=False)


@pytest.mark.parametrize(("known", "intervals"), [(1, 12), (12, 12), (13, 16), (40, 40)])
def test_lines_end_where_the_crawl_ends(known: int, intervals: int) -> None:
    shown = chart([4.0] * known, [2.0] * known)
    processed, failed = shown.series
    assert processed.values == [2.0] * known + [None] * (intervals - known)
    assert failed.values == [1.0] * known + [None] * (intervals - known)
    assert len(shown.names) == known
    assert len(shown.ticks) == 5


def test_quarters_of_the_chart_are_whole_seconds() -> None:
    assert chart([1.0] * 13, [0.0] * 13).ticks == ["start", "8 s", "16 s", "24 s", "32 s"]


def test_the_chart_of_a_finished_crawl_ends_with_its_work() -> None:
    shown = Throughput(CrawlPace(2.0, [4.0] * 5, [2.0] * 5, estimated=False), is_over=True)
    assert [line.values for line in shown.series] == [[2.0] * 5, [1.0] * 5]
    assert shown.ticks == ["start", "2.5 s", "5 s", "7.5 s", "10 s"]


def test_discovered_and_done_urls_are_those_of_the_last_minute_before_each_point() -> None:
    started = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    minutes = [
        CrawlMinute(started + timedelta(minutes=at), discovered, settled, 0)
        for at, discovered, settled in ((10, 50, 20), (20, 90, 60), (40, 100, 100))
    ]
    shown = CrawlGrowth(minutes, started)
    discovered, done = shown.series
    assert [discovered.values[at] for at in (0, 9, 10, 20, 39, 40)] == [0, 0, 50, 90, 90, 100]
    assert [done.values[at] for at in (0, 10, 20, 40)] == [0, 20, 60, 100]
    assert shown.ticks == ["start", "10 min", "20 min", "30 min", "40 min"]
    assert shown.times[-1] == minutes[-1].at


async def test_the_growth_of_a_crawl_is_shown_once_minutes_are_stored(
    visitor: Visitor, database: Database, queue: Queue
) -> None:
    job = await start(database, queue)
    assert "URLs over time" not in (await visitor.get(f"/jobs/{job}")).text
    await execute(
        database,
        "UPDATE crawl_jobs SET started_at = now() - interval '5 minutes' WHERE id = %s",
        job,
    )
    await execute(
        database,
        """
        INSERT INTO crawl_minutes (job_id, at, discovered, settled, failed, newly_settled,
                                   newly_failed)
        SELECT %s, now() - minutes * interval '1 minute', 100, 80, 0, 20, 0
          FROM generate_series(1, 4) AS minutes
        """,
        job,
    )
    page = (await visitor.get(f"/jobs/{job}")).text
    assert "discovered now 100, at most 100; done now 0, at most 80" in page
