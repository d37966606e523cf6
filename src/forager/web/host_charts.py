"""The last hours of a host as lines: requests, failures, response times and the delay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forager.fetch.host_history.record import HostMinute
from forager.web.charts import Series

POINTS = 72
WIDTH = timedelta(minutes=5)
# label, counted answers and color of each line
ANSWERS = (
    ("requests", "requests", "a"),
    ("4xx", "client_errors", "c"),
    ("5xx", "server_errors", "d"),
    ("no answer", "unanswered", "e"),
)


@dataclass(frozen=True, slots=True)
class HostCharts:
    """One point for five minutes; gaps are times without requests."""

    answers: list[Series]
    times: list[Series]
    ends: list[datetime]
    requests: int
    failed: int

    @property
    def ticks(self) -> list[str]:
        return ["6 h ago", "4 h ago", "2 h ago", "now"]


def host_charts(minutes: Sequence[HostMinute], now: datetime) -> HostCharts:
    ends = [now - ago * WIDTH for ago in reversed(range(POINTS))]
    parts: list[list[HostMinute]] = [[] for _ in ends]
    for minute in minutes:
        place = POINTS - 1 - max(0, (now - minute.at) // WIDTH)
        if place >= 0:
            parts[place].append(minute)
    failed = sum(each.client_errors + each.server_errors + each.unanswered for each in minutes)
    return HostCharts(_answers(parts), _times(parts), ends, _sum(minutes, "requests"), failed)


def _sum(minutes: Sequence[HostMinute], name: str) -> int:
    return sum(getattr(each, name) for each in minutes)


def _answers(parts: Sequence[Sequence[HostMinute]]) -> list[Series]:
    lines = [
        Series(label, [_sum(part, name) for part in parts], tone) for label, name, tone in ANSWERS
    ]
    return [line for line in lines if line.tone == "a" or any(line.values)]


def _times(parts: Sequence[Sequence[HostMinute]]) -> list[Series]:
    answered = [_sum(part, "requests") - _sum(part, "unanswered") for part in parts]
    means = [
        sum(each.seconds for each in part) / count if count else None
        for part, count in zip(parts, answered, strict=True)
    ]
    delays = [max((each.delay for each in part), default=None) for part in parts]
    return [Series("response time", means, "b"), Series("delay", delays, "c")]
