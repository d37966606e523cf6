"""The values of the overview, from the services of all packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from forager.crawl.reports.minutes import ThroughputMinute, throughput
from forager.crawl.reports.report import CrawlReport, crawl_reports, failures_of
from forager.documents.freshness import Freshness, content_freshness
from forager.documents.sources import list_held_back, list_sources
from forager.jobs.history import recent_jobs
from forager.jobs.job import StateCount
from forager.jobs.lifecycle import ACTIVE, Status
from forager.jobs.summary import summarize_jobs
from forager.jobs.workers import Worker, list_workers
from forager.metrics.backlog import BacklogSample, backlog_samples
from forager.parsers.rates import degraded_domains
from forager.parsers.rollouts import list_bypassed
from forager.products.filters import PriceDirection
from forager.products.lookup import thumbnails
from forager.products.price_history import PriceMove, largest_changes
from forager.products.service import CatalogCounts, catalog_counts
from forager.services.report import list_service_processes
from forager.tasks.activity import TaskActivity, TasksNow, task_activity, tasks_now
from forager.tasks.alarms import list_alarms
from forager.tasks.dead_letters import LetterFilter, count_letters
from forager.web.formats import counted, humanize_causes
from forager.web.visit import WebVisit

MINUTES = 60
SHOWN_RUNNING = 8
SHOWN_ATTENTION = 5
SHOWN_DROPS = 5
DROPS_PERIOD = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that needs the attention of an operator."""

    text: str
    href: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of one kind: URLs of crawls, and attempts at tasks."""

    kind: str
    urls: int
    attempts: int

    @property
    def total(self) -> int:
        return self.urls + self.attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class LastHour:
    """Counts over many rows of the last hour or longer, cached on a large database."""

    backlog: list[BacklogSample]
    # jobs that are not finished
    active: int
    crawled: list[ThroughputMinute]
    # URLs of crawls per second, as their runners report it
    rate: float
    tasks: TaskActivity
    failures: list[Failures]
    # when it was counted; None: now
    at: datetime | None

    @property
    def task_rate(self) -> float:
        """Attempts at tasks per second, over the last two minutes."""
        return sum(self.tasks.attempts[-2:]) / 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state now, read each time, and counts of the last hour, which may be cached."""

    counts: dict[Status, int]
    pending: list[StateCount]
    running: list[CrawlReport]
    tasks: TasksNow
    workers: int | None
    attention: list[Attention]
    has_sources: bool
    freshness: Freshness
    catalog: CatalogCounts | None
    drops: list[PriceMove]
    # the position of the image of each of them that has one
    thumbnails: dict[int, int]
    hour: LastHour
    # the time range of the charts
    shown: LastHour

    @property
    def is_new(self) -> bool:
        """Whether nothing was crawled or tracked yet."""
        return not (self.has_sources or self.tasks.any_tasks or any(self.counts.values()))

    @property
    def pages_left(self) -> int:
        return sum(state.total_pending for state in self.pending)


async def load_overview(visit: WebVisit, minutes: int = MINUTES) -> Overview:
    """The overview for the caller; charts show the last `minutes`."""
    owner = visit.caller.sees_only
    counts = await visit.queue.counts(user_id=owner)
    sources = await list_sources(visit.database, user_id=owner, limit=1)
    tasks = await tasks_now(visit.database)
    hour = await _last(visit, MINUTES)
    catalog = await _catalog_today(visit) if tasks.any_tasks else None
    workers = None
    if visit.may_operate:
        workers = await list_workers(visit.database, visit.settings)
    return Overview(
        counts=counts,
        pending=await visit.queue.pending_work(user_id=owner),
        running=await _running(visit),
        tasks=tasks,
        workers=None if workers is None else sum(each.is_reachable for each in workers),
        attention=[
            *await attention(visit, counts, workers),
            *_held_tasks(visit, tasks, hour.tasks.total_waiting),
        ],
        has_sources=bool(sources.items),
        freshness=await content_freshness(visit.database, user_id=owner),
        catalog=catalog.counts if catalog else None,
        drops=catalog.drops if catalog else [],
        thumbnails=catalog.thumbnails if catalog else {},
        hour=hour,
        shown=hour if minutes == MINUTES else await _last(visit, minutes),
    )


@dataclass(frozen=True, slots=True)
class CatalogToday:
    """What changed in the catalog."""

    counts: CatalogCounts
    drops: list[PriceMove]
    thumbnails: dict[int, int]


async def _catalog_today(visit: WebVisit) -> CatalogToday:
    async def read() -> CatalogToday:
        since = datetime.now(UTC) - DROPS_PERIOD
        drops = await largest_changes(
            visit.database, since, direction=PriceDirection.DROPS, limit=SHOWN_DROPS
        )
        images = await thumbnails(visit.database, [each.product_id for each in drops])
        return CatalogToday(await catalog_counts(visit.database), drops, images)

    found: CatalogToday = await visit.cache.get("catalog today", read)
    return found


async def _running(visit: WebVisit) -> list[CrawlReport]:
    running = await visit.queue.list_jobs(
        statuses=[Status.PROCESSING], user_id=visit.caller.sees_only, limit=SHOWN_RUNNING
    )
    reports = await crawl_reports(visit.database, [job.id for job in running.items])
    return [reports[job.id] for job in running.items if job.id in reports]


async def _last(visit: WebVisit, minutes: int) -> LastHour:
    owner = visit.caller.sees_only

    async def of_tasks() -> TaskActivity:
        return await task_activity(visit.database, minutes=minutes)

    crawled = await visit.cache.look(
        ("crawls", owner, minutes), lambda: _crawl_activity(visit, minutes)
    )
    # the same for all owners: tasks have none
    worked = await visit.cache.look(("task activity", minutes), of_tasks)
    backlog, active, minutes_crawled, rate, errors = crawled.answer
    tasks: TaskActivity = worked.answer
    return LastHour(
        backlog=backlog,
        active=active,
        crawled=minutes_crawled,
        rate=rate,
        tasks=tasks,
        failures=by_kind(errors, tasks.errors),
        at=min((each.at for each in (crawled, worked) if each.at), default=None),
    )


async def _crawl_activity(
    visit: WebVisit, minutes: int
) -> tuple[list[BacklogSample], int, list[ThroughputMinute], float, list[tuple[str, int]]]:
    """The work of crawls: backlog and URLs, over time and now, and failures by kind."""
    database, owner = visit.database, visit.caller.sees_only
    counts = await visit.queue.counts(user_id=owner)
    active = sum(counts[status] for status in ACTIVE)
    recent = await recent_jobs(database, minutes=minutes, user_id=owner)
    summary = await summarize_jobs(database, user_id=owner)
    return (
        await backlog_samples(database, minutes=minutes, user_id=owner),
        active,
        await throughput(database, minutes=minutes, user_id=owner),
        summary.pages_per_second,
        await failures_of(database, recent),
    )


async def attention(
    visit: WebVisit, counts: dict[Status, int], workers: list[Worker] | None
) -> list[Attention]:
    """Everything that needs attention, the most severe first."""
    found = [*await _failed_jobs(visit, counts), *await _refused(visit)]
    if workers is not None:
        found += [*_unreachable_workers(workers, counts), *await _failing_services(visit)]
        found += [
            *await _paused_hosts(visit),
            *await _alarms(visit),
            *await _bypassed_parsers(visit),
        ]
        found += [*await _dead_letters(visit), *await _slowed(visit), *await _degraded(visit)]
    return sorted(found, key=lambda each: not each.is_bad)


def by_kind(urls: Iterable[tuple[str, int]], attempts: Iterable[tuple[str, int]]) -> list[Failures]:
    """Both counts of each kind, the most frequent first."""
    of_crawls, of_tasks = dict(urls), dict(attempts)
    found = [
        Failures(kind, of_crawls.get(kind, 0), of_tasks.get(kind, 0))
        for kind in {**of_crawls, **of_tasks}
    ]
    return sorted(found, key=lambda each: (-each.total, each.kind))


def _held_tasks(visit: WebVisit, tasks: TasksNow, waiting: int) -> list[Attention]:
    if not visit.may_operate or not tasks.any_tasks:
        return []
    if tasks.hold is not None:
        return [Attention(f"All tasks are {tasks.hold}", "/tasks")]
    if tasks.no_scheduler and waiting:
        return [Attention("Tasks are due, but no scheduler is running", "/workers", True)]
    return []


async def _failed_jobs(visit: WebVisit, counts: dict[Status, int]) -> list[Attention]:
    if not counts[Status.FAILED]:
        return []
    found = await visit.queue.list_jobs(
        statuses=[Status.FAILED], user_id=visit.caller.sees_only, limit=1
    )
    text = f"{counted(counts[Status.FAILED], 'job')} failed"
    newest = found.items[0].source_id or found.items[0].kind
    return [Attention(f"{text}, the newest: {newest}", "/jobs?status=failed", True)]


async def _refused(visit: WebVisit) -> list[Attention]:
    found = await list_held_back(
        visit.database, user_id=visit.caller.sees_only, limit=SHOWN_ATTENTION
    )
    return [
        Attention(
            f"Generation {each.number} of {each.source_id} is {humanize_causes(each.label)}",
            f"/sources/{each.source_id}",
        )
        for each in found
    ]


def _unreachable_workers(workers: list[Worker], counts: dict[Status, int]) -> list[Attention]:
    unreachable = sum(not worker.is_reachable for worker in workers)
    if unreachable:
        return [Attention(f"{counted(unreachable, 'worker')} unreachable", "/workers", True)]
    waiting = counts[Status.PENDING] + counts[Status.PROCESSING]
    if waiting and not workers:
        return [Attention("Jobs are waiting, but no worker is running", "/workers", True)]
    return []


async def _failing_services(visit: WebVisit) -> list[Attention]:
    found = await list_service_processes(visit.database, visit.settings)
    running = [service for each in found if not each.is_gone for service in each.services]
    states = (
        ("is failing and being restarted", [s for s in running if s.is_failing and not s.is_stuck]),
        ("is stuck", [s for s in running if s.is_stuck]),
        ("skips bad rows", [s for s in running if s.skipped]),
    )
    return [
        Attention(f"Background service {name} {message}", "/workers", message != "skips bad rows")
        for message, services in states
        for name in sorted({each.name for each in services})
    ]


async def _dead_letters(visit: WebVisit) -> list[Attention]:
    count = await count_letters(visit.database, LetterFilter())
    if not count:
        return []
    return [Attention(f"{counted(count, 'task')} failed permanently", "/errors", True)]


async def _slowed(visit: WebVisit) -> list[Attention]:
    found = await visit.domains.list_domains(slowed=True, limit=SHOWN_ATTENTION)
    return [
        Attention(f"{domain.domain_name} is rate-limiting requests", "/domains?slowed=yes")
        for domain in found.items
    ]


async def _paused_hosts(visit: WebVisit) -> list[Attention]:
    found = await visit.domains.list_domains(on_hold=True, limit=SHOWN_ATTENTION)
    return [
        Attention(
            f"{domain.domain_name} is {domain.task_hold or 'disabled'}",
            f"/domains/{quote(domain.domain_name, safe='')}",
        )
        for domain in found.items
    ]


async def _alarms(visit: WebVisit) -> list[Attention]:
    return [
        Attention(
            f"Results of {alarm.domain} are withheld ({alarm.reason})",
            f"/domains/{alarm.domain}",
            True,
        )
        for alarm in (await list_alarms(visit.database))[:SHOWN_ATTENTION]
    ]


async def _bypassed_parsers(visit: WebVisit) -> list[Attention]:
    bypassed = await list_bypassed(visit.database)
    return [
        Attention(f"Parser {each.parser} is bypassed: {each.reason}", "/parsers", True)
        for each in bypassed[:SHOWN_ATTENTION]
    ]


async def _degraded(visit: WebVisit) -> list[Attention]:
    found = await degraded_domains(visit.database, visit.settings)
    return [
        Attention(
            f"{rate.domain}: {rate.recent_good / rate.recent_pages:.0%} of the last"
            f" {rate.recent_pages} pages were parsed without errors, usually"
            f" {rate.earlier_good / rate.earlier_pages:.0%}",
            "/parsers",
            True,
        )
        for rate in found[:SHOWN_ATTENTION]
    ]
