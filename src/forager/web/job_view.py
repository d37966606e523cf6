"""The values of the page of a job."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from forager.crawl.options import CrawlOptions
from forager.crawl.reports.minutes import CrawlMinute, crawl_minutes
from forager.crawl.reports.report import (
    MAX_SAMPLE,
    AnswerGroup,
    CrawlPace,
    CrawlReport,
    answers_of,
    crawl_report,
    pace_of,
)
from forager.crawl.results.url_lists import UrlFilter, list_settled
from forager.crawl.settlement import Outcome, SettledUrl, UrlSort
from forager.errors import NotFound
from forager.extract.hosts import host_of
from forager.fetch.domains import Domain
from forager.jobs.job import Job, JobEvent, Move
from forager.jobs.lifecycle import RETRY_FAILED, Status, moves_by_hand
from forager.jobs.workers import job_report
from forager.web.charts import BarPart, Series
from forager.web.formats import duration, humanize
from forager.web.visit import WebVisit

EXAMPLES = 3
LATEST = 10
# of a job, for a chart of them
FEWEST_MINUTES = 2
# processed URLs up to which the latest ones are shown
MAX_FOLLOWED = 20_000
MAX_HOSTS = 5
SAMPLED_FAILURES = 200
# multiples of four: a chart of whole seconds has whole seconds at its quarters
FEWEST_INTERVALS = 12
MOST_INTERVALS = 40
TONES = {
    Outcome.FETCHED: "a",
    Outcome.UNCHANGED: "b",
    Outcome.DUPLICATE: "c",
    Outcome.FAILED: "d",
    Outcome.EXCLUDED: "e",
}


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """URLs that failed for one reason, with a few of them."""

    reason: str
    count: int
    examples: list[SettledUrl]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """Everything that the page of a job shows."""

    job: Job
    report: CrawlReport
    moves: list[Move]
    events: list[JobEvent]
    failures: list[FailureGroup]
    throughput: Throughput | None
    progress: CrawlGrowth | None
    answers: list[AnswerGroup]
    options: list[tuple[str, str]]
    # of a running crawl: the URLs processed last, and the state of its hosts
    latest: list[SettledUrl]
    hosts: list[Domain]

    @property
    def is_sampled(self) -> bool:
        """Whether the answers are those of a sample of the URLs."""
        return sum(self.report.ledger.settled.values()) > MAX_SAMPLE

    @property
    def can_retry(self) -> bool:
        """Whether failed URLs can be fetched again."""
        return self.job.status in RETRY_FAILED.sources

    @property
    def ledger_parts(self) -> list[BarPart]:
        settled = self.report.ledger.settled
        parts = [BarPart(outcome.value, settled[outcome], TONES[outcome]) for outcome in Outcome]
        return [*parts, BarPart("pending", self.report.ledger.pending, "f")]

    @property
    def outcomes(self) -> list[tuple[str, int, list[tuple[str, int]]]]:
        """Each outcome, how many URLs have it, and for which reasons."""
        ledger = self.report.ledger
        return [
            (outcome.value, ledger.settled[outcome], ledger.reasons_of(outcome))
            for outcome in Outcome
        ]


@dataclass(frozen=True, slots=True)
class Throughput:
    """The lines and labels of the chart; while the crawl runs, it has room for what follows."""

    pace: CrawlPace
    is_over: bool

    @property
    def _intervals(self) -> int:
        if self.is_over:
            return len(self.pace.settled)
        return max(FEWEST_INTERVALS, 4 * math.ceil(len(self.pace.settled) / 4))

    @property
    def series(self) -> list[Series]:
        later = [None] * (self._intervals - len(self.pace.settled))
        lines = [Series("processed", [*self.pace.per_second, *later], "a")]
        if any(self.pace.failed):
            failed = [count / self.pace.width for count in self.pace.failed]
            lines.append(Series("failed", [*failed, *later], "d"))
        return lines

    @property
    def ticks(self) -> list[str]:
        """Times since the start at each quarter of the chart."""
        length = self.pace.width * self._intervals
        return ["start", *(duration(length * quarter / 4) for quarter in range(1, 5))]

    @property
    def names(self) -> list[str]:
        width = self.pace.width
        return [f"after {duration(place * width)}" for place in range(len(self.pace.settled))]


@dataclass(frozen=True, slots=True)
class CrawlGrowth:
    """URLs discovered and done since the start, from the stored minutes and the present."""

    minutes: list[CrawlMinute]
    started: datetime

    @property
    def times(self) -> list[datetime]:
        """The end of each point."""
        length = self.minutes[-1].at - self.started
        return [
            self.started + length * place / MOST_INTERVALS for place in range(MOST_INTERVALS + 1)
        ]

    @property
    def series(self) -> list[Series]:
        known = [self._last(end) for end in self.times]
        lines = (
            ("discovered", "discovered", "b"),
            ("done", "settled", "a"),
            ("failed", "failed", "d"),
        )
        found = [
            Series(label, [getattr(each, name) if each else 0 for each in known], tone)
            for label, name, tone in lines
        ]
        return [line for line in found if line.name != "failed" or any(line.values)]

    def _last(self, end: datetime) -> CrawlMinute | None:
        place = bisect_right(self.minutes, end, key=lambda minute: minute.at)
        return self.minutes[place - 1] if place else None

    @property
    def ticks(self) -> list[str]:
        seconds = (self.minutes[-1].at - self.started).total_seconds()
        return ["start", *(duration(seconds * quarter / 4) for quarter in range(1, 5))]


async def load_job(visit: WebVisit, job: Job) -> JobView:
    database, queue = visit.database, visit.queue
    report = await crawl_report(database, queue, job.id)
    details = await job_report(database, queue, job.id)
    return JobView(
        job=report.job,
        report=report,
        moves=moves_of(report.job),
        events=details.last_events[::-1],
        failures=await _failures(visit, report),
        throughput=await _throughput(visit, report),
        progress=await _progress(visit, report),
        answers=await load_answers(visit, report),
        options=_options(report.job),
        latest=await _latest(visit, report),
        hosts=await _hosts(visit, report.job),
    )


def moves_of(job: Job) -> list[Move]:
    """The moves that are possible now, in the order of the buttons."""
    possible = moves_by_hand(job.status)
    return [move for move in Move if move.value in possible]


async def _failures(visit: WebVisit, report: CrawlReport) -> list[FailureGroup]:
    counts = report.ledger.reasons_of(Outcome.FAILED)
    if not counts:
        return []
    failed = UrlFilter(outcomes=[Outcome.FAILED])
    found = await list_settled(visit.database, report.job.id, failed, limit=SAMPLED_FAILURES)
    return [
        FailureGroup(reason, count, [u for u in found.items if u.reason == reason][:EXAMPLES])
        for reason, count in counts
    ]


async def _latest(visit: WebVisit, report: CrawlReport) -> list[SettledUrl]:
    """URLs that a running crawl processed last, unless sorting its URLs every second costs much."""
    settled = sum(report.ledger.settled.values())
    if report.job.status is not Status.PROCESSING or settled > MAX_FOLLOWED:
        return []
    found = await list_settled(
        visit.database, report.job.id, sort=UrlSort.TIME, descending=True, limit=LATEST
    )
    return found.items


async def _hosts(visit: WebVisit, job: Job) -> list[Domain]:
    """The hosts of the start URLs of a running crawl, as far as anything was requested there."""
    if job.status is not Status.PROCESSING:
        return []
    names = dict.fromkeys(host_of(url) for url in job.payload.get("urls", [])[:MAX_HOSTS])
    found = []
    for name in names:
        with suppress(NotFound):
            found.append(await visit.domains.get(name))
    return found


async def load_answers(visit: WebVisit, report: CrawlReport) -> list[AnswerGroup]:
    """The answers of a crawl by HTTP status and by media type, read again when there are more."""
    settled = sum(report.ledger.settled.values())

    async def read() -> list[AnswerGroup]:
        return await answers_of(visit.database, report.job.id)

    return await visit.cache.get(("answers", report.job.id, settled), read) if settled else []


async def _throughput(visit: WebVisit, report: CrawlReport) -> Throughput | None:
    """The pace until now, or until the last commit of a job that is not at work."""
    job = report.job
    if job.started_at is None:
        return None
    since = job.started_at.timestamp()
    end = _end(report)
    length = max(0.0, (end.timestamp() if end else time.time()) - since)
    # whole seconds, because batches are committed about once in one
    width = max(1, math.ceil(length / MOST_INTERVALS))
    intervals = max(1, math.ceil(length / width))
    until = since + width * intervals

    async def read() -> CrawlPace:
        return await pace_of(
            visit.database, [job.id], since=since, until=until, intervals=intervals
        )

    return Throughput(await visit.cache.get(("pace", job.id, end), read), end is not None)


async def _progress(visit: WebVisit, report: CrawlReport) -> CrawlGrowth | None:
    """None for a crawl of which few minutes are stored."""
    started, end = report.job.started_at, _end(report) or datetime.now(UTC)
    stored = await crawl_minutes(visit.database, report.job.id)
    minutes = [each for each in stored if started and started <= each.at < end]
    if len(minutes) < FEWEST_MINUTES or started is None:
        return None
    ledger = report.ledger
    now = CrawlMinute(
        end, ledger.discovered, sum(ledger.settled.values()), ledger.settled[Outcome.FAILED]
    )
    return CrawlGrowth([*minutes, now], started)


def _end(report: CrawlReport) -> datetime | None:
    """When the work of a job ended; None while it runs."""
    job = report.job
    return None if job.status is Status.PROCESSING else report.last_commit or job.completed_at


def _options(job: Job) -> list[tuple[str, str]]:
    """The options of the crawl by title; secrets are masked already, or sealed."""
    return [
        (_title(name), _words(value)) for name, value in job.payload.items() if name != "sealed"
    ]


def _title(name: str) -> str:
    if name == "urls":
        return "URLs"
    field = CrawlOptions.model_fields.get(name)
    return (field and field.title) or humanize(name).capitalize()


def _words(value: object) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:10]))
        return f"{shown} and {len(value) - 10} more" if len(value) > 10 else shown
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)[:1000]
