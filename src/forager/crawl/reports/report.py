"""Reports on crawls: counts, pace, waits and changes, for all adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from forager.amounts import rounded_time
from forager.crawl.ledger import Ledger, ledger_from
from forager.crawl.store import state as store
from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.publication import select_generations_of_jobs
from forager.jobs.job import Job
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.queue import Queue, select_jobs_by_id, select_waiting_for_browser

# fields of the generation in a report, compared with the previous one
CHANGES = (
    "number", "state", "pages", "added", "changed", "removed", "unchanged", "carried_over", "note",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CrawlWait:
    """The reason why a crawl waits, at the time of the report."""

    reason: str
    seconds: float | None = None

    @property
    def message(self) -> str:
        """What the crawl waits for, with the time until the next request."""
        if self.seconds is None or self.seconds < 1:
            return self.reason
        return f"{self.reason}, next request in {rounded_time(self.seconds)}"


def wait_from(
    status: Status, row: dict[str, Any], due: str = "waiting for a worker"
) -> CrawlWait | None:
    """The wait of a job by the row of its state; `due` is the reason if it could start now."""
    reason: str | None = row["waits_for"]
    if status is Status.PENDING:
        if row["starts_in"] <= 0:
            return CrawlWait(due)
        return CrawlWait(reason or "waiting to be run again", row["starts_in"])
    if status is not Status.PROCESSING or reason is None or not row["is_reported"]:
        return None
    return CrawlWait(reason, row["waits_in"])


@dataclass(frozen=True, slots=True)
class CrawlReport:
    """A job and its ledger at one moment."""

    job: Job
    ledger: Ledger
    seconds: float
    depth: int
    # the generation of the crawl; None without documents
    generation: Generation | None = None
    # None if the crawl is at work, or has ended
    wait: CrawlWait | None = None
    # URLs per second of the last half minute; None unless it runs
    pace: float | None = None
    # the time of its last commit
    last_commit: datetime | None = None
    # memory of its runner in MB while it runs
    memory_mb: int | None = None
    # the last log lines of its runner: `at`, `level` and `text`
    log_lines: Sequence[Mapping[str, str]] = ()

    @property
    def is_held_back(self) -> bool:
        """Whether the crawl has finished without publishing its pages."""
        return self.generation is not None and self.generation.is_held_back

    @property
    def pages_per_second(self) -> float:
        """Pace of the last half minute while the crawl runs, and the average afterwards."""
        if self.pace is not None:
            return self.pace
        return self.ledger.pages / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the last half minute; None if there is none, or nothing is left."""
        pace = self.pace
        if not pace:
            return None
        left = self.ledger.pending
        for name in ("max_pages", "granted_pages"):
            if isinstance(limit := self.job.payload.get(name), int):
                left = min(left, max(0, limit - self.ledger.listed))
        return left / pace

    @property
    def reason(self) -> str | None:
        """Why the crawl ended as it did, or was stopped; None if it simply finished."""
        job = self.job
        if self.is_held_back and self.generation is not None:
            return self.generation.label
        if job.stop_reason == "finished":
            return None
        # a job that continues keeps the error of its last run
        return job.stop_reason or (job.error_message if job.status in FINISHED else None)

    def as_json(self) -> dict[str, Any]:
        """The report as JSON, as the command line prints it."""
        return {
            "job_id": str(self.job.id),
            "source_id": self.job.source_id,
            "status": self.job.shown_status,
            "stop_reason": self.job.stop_reason,
            "error_message": self.job.error_message,
            "progress_percentage": self.job.progress_percentage,
            "seconds": round(self.seconds, 3),
            "pages_per_second": round(self.pages_per_second, 2),
            "waiting": None if self.wait is None else self.wait.message,
            "pages": self.ledger.pages,
            "bytes": self.ledger.bytes_fetched,
            "depth": self.depth,
            "ledger": self.ledger.summary(),
            "generation": changes_of(self.generation),
        }


def changes_of(generation: Generation | None) -> dict[str, Any] | None:
    """The state of a generation, and how it differs from the one before."""
    return None if generation is None else {name: getattr(generation, name) for name in CHANGES}


async def crawl_report(database: Database, queue: Queue, job_id: UUID) -> CrawlReport:
    """The report of a crawl, whatever its state; all zeros before its first commit."""
    found = await crawl_reports(database, [job_id])
    # a job that does not exist is reported by the queue
    return found.get(job_id) or _report(await queue.get(job_id), None, None, "")


async def crawl_reports(database: Database, job_ids: Sequence[UUID]) -> dict[UUID, CrawlReport]:
    """The reports of several crawls in few statements; jobs that are gone are left out."""
    async with database.connection() as connection:
        jobs = await select_jobs_by_id(connection, job_ids)
        states = await store.select_states(connection, job_ids)
        built = await select_generations_of_jobs(connection, job_ids)
        awaited = await workers_awaited(connection, jobs)
    return {
        job.id: _report(job, states.get(job.id), built.get(job.id), awaited.get(job.id, ""))
        for job in jobs
    }


async def waits_of(database: Database, jobs: Sequence[Job]) -> dict[UUID, str]:
    """What active crawls wait for: a host, its robots.txt or a retry, but not a worker."""
    active = [job.id for job in jobs if job.status in (Status.PENDING, Status.PROCESSING)]
    return waits_in(await crawl_reports(database, active) if active else {})


def waits_in(reports: Mapping[UUID, CrawlReport]) -> dict[UUID, str]:
    """What the crawls of these reports wait for, but not a worker."""
    return {
        job_id: report.wait.message
        for job_id, report in reports.items()
        if report.wait and (report.wait.seconds or report.job.status is Status.PROCESSING)
    }


async def workers_awaited(connection: Connection, jobs: Sequence[Job]) -> dict[UUID, str]:
    """Which worker each pending job waits for."""
    pending = {job.id: job for job in jobs if job.status is Status.PENDING}
    if not pending:
        return {}
    rendered = await select_waiting_for_browser(connection, list(pending))
    return {
        job_id: "waiting for a worker"
        + (" that renders" if job_id in rendered else "")
        + (f" of region {job.region}" if job.region else "")
        + _command(job.region, renders=job_id in rendered)
        for job_id, job in pending.items()
    }


def _command(region: str | None, *, renders: bool) -> str:
    options = (" --render" if renders else "") + (f" --region {region}" if region else "")
    return f" (forager worker{options})" if options else ""


def _report(
    job: Job, state: dict[str, Any] | None, generation: Generation | None, due: str
) -> CrawlReport:
    if state is None:
        wait = CrawlWait(due) if job.status is Status.PENDING else None
        return CrawlReport(job, Ledger(), 0.0, 0, generation, wait=wait)
    runs = job.status is Status.PROCESSING and state["is_reported"]
    return CrawlReport(
        job,
        ledger_from(state),
        state["seconds"],
        state["current_depth"],
        generation,
        wait=wait_from(job.status, state, due),
        pace=state["pace"] if runs else None,
        last_commit=state["updated_at"],
        memory_mb=state["memory_mb"] if runs else None,
        log_lines=state["log_lines"],
    )


# URLs that are read for one answer; of larger crawls a sample is
MAX_SAMPLE = 10_000
INTERVALS = 60


@dataclass(frozen=True, slots=True)
class CrawlPace:
    """URLs settled in each interval, the oldest first; `estimated` if only a sample was read."""

    width: float
    settled: list[float]
    failed: list[float]
    estimated: bool

    @property
    def per_second(self) -> list[float]:
        return [count / self.width for count in self.settled]


async def pace_of(
    database: Database,
    job_ids: Sequence[UUID],
    *,
    since: float,
    until: float,
    intervals: int = INTERVALS,
) -> CrawlPace:
    """The pace of these crawls together between two moments, in seconds of the epoch."""
    width = max(1.0, (until - since) / intervals)
    sample = max(1, MAX_SAMPLE // max(1, len(job_ids)))
    rows = await database.run(
        store.sample_settled, job_ids, since=since, width=width, sample=sample
    )
    settled, failed = [0.0] * intervals, [0.0] * intervals
    for number, count, failures, _ in rows:
        place = min(max(number, 0), intervals - 1)
        settled[place] += count
        failed[place] += failures
    return CrawlPace(width, settled, failed, estimated=any(row[3] for row in rows))


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """Answers with one HTTP status or media type, and their times in milliseconds."""

    status: int | None
    content_type: str | None
    urls: int
    median_ms: int | None
    slow_ms: int | None


async def answers_of(database: Database, job_id: UUID) -> list[AnswerGroup]:
    """The answers of a crawl by HTTP status and by media type; of a large one, of a sample."""
    rows = await database.run(store.sample_answers, job_id, sample=MAX_SAMPLE)
    return [AnswerGroup(*row) for row in rows]


async def failures_of(database: Database, job_ids: Sequence[UUID]) -> list[tuple[str, int]]:
    """Failed URLs of these crawls by reason, the most frequent first."""
    return await database.run(store.sum_failures, job_ids)
