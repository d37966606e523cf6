"""The throughput chart of a job."""

from __future__ import annotations

import pytest

from forager.crawl.report import CrawlPace
from forager.web.job_view import Throughput


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
