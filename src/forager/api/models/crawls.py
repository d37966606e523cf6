"""Crawls: what to crawl and how, and how far it is."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from forager.api.models.jobs import ShownStatus
from forager.api.models.values import LARGEST_BIGINT, LARGEST_INT, Order, PlainText, View, example
from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.options import MAX_SEEDS, CrawlOptions, Strategy
from forager.crawl.report import CrawlReport
from forager.documents.generation import State
from forager.jobs.queue import Enqueued

MAX_PATTERNS = 1000
MAX_HEADERS = 100

SourceName = Annotated[
    PlainText,
    Field(min_length=1, max_length=200, pattern=r"^[^/\\?#%\s]+$", examples=["docs.example.org"]),
]
Pattern = Annotated[PlainText, Field(min_length=1, max_length=2000)]
Text = Annotated[PlainText, Field(max_length=8000)]


class CrawlOrder(Order):
    """What to crawl and how; the options of `forager crawl`."""

    model_config = example(
        urls=["https://docs.example.org/"], max_pages=500, exclude=["/archive/*"], priority=5
    )

    urls: list[Text] = Field(min_length=1, max_length=MAX_SEEDS, description="Where to start.")
    source: SourceName | None = Field(
        default=None, description="The name of what is crawled; by default the host."
    )
    priority: int = Field(
        default=0, ge=-LARGEST_INT, le=LARGEST_INT, description="Higher goes first."
    )
    strategy: Strategy = Field(default=Strategy.SITE, description="Where URLs come from.")
    scope: ScopeMode = Field(default=ScopeMode.HOST, description="How far to go from the start.")
    include: list[Pattern] = Field(
        default=[], max_length=MAX_PATTERNS, description="Only URLs like these: /docs/* or re:…"
    )
    exclude: list[Pattern] = Field(
        default=[], max_length=MAX_PATTERNS, description="No URLs like these; beats `include`."
    )
    max_pages: int | None = Field(default=None, ge=1, le=LARGEST_BIGINT)
    max_depth: int | None = Field(default=None, ge=0, le=1000)
    max_time: float | None = Field(
        default=None, gt=0, le=1e9, allow_inf_nan=False, description="In seconds."
    )
    max_bytes: int | None = Field(default=None, ge=1, le=LARGEST_BIGINT)
    concurrency: int | None = Field(
        default=None, ge=1, le=1000, description="Connections to a host; by default 5."
    )
    delay: float | None = Field(
        default=None, ge=0, le=3600, description="Seconds between requests; by default 1."
    )
    retries: int = Field(default=3, ge=0, le=100, description="Tries more for each URL.")
    retry_delay: float = Field(default=2.0, ge=0, le=3600)
    user_agent: Annotated[PlainText, Field(min_length=1, max_length=500)] | None = None
    headers: dict[PlainText, Text] = Field(
        default={}, max_length=MAX_HEADERS, description="Sent to the named sites alone."
    )
    proxy: Text | None = Field(default=None, description="The URL of a proxy, or `pool`.")
    documents: bool = Field(default=True, description="Keep sections and a search index.")
    products: bool = Field(
        default=False, description="Track the product pages that are found: they become tasks."
    )
    carry_over: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="Refreshes in a row that a page which fails temporarily stays published;"
        " by default the setting `carry_over_refreshes`.",
    )
    carry_over_days: float | None = Field(
        default=None,
        ge=0,
        le=3650,
        description="Days that a page which fails temporarily stays published;"
        " by default the setting `carry_over_days`.",
    )
    allow_private: bool = Field(
        default=False, description="Allow private addresses; needs the scope admin."
    )
    ignore_robots: bool = Field(default=False, description="Do not obey robots.txt.")

    def options(self) -> CrawlOptions:
        """The options of the crawl; raises Pydantic's error for what is wrong with a value."""
        given = self.model_dump(exclude={"source", "priority"}, exclude_unset=True)
        return CrawlOptions.model_validate(given)


class CrawlStarted(View):
    """The job that does the work; not `created` if the source is being crawled already."""

    job_id: UUID
    progress_id: UUID = Field(description="The same id, for /api/crawl-progress.")
    source_id: str
    status: ShownStatus
    created: bool

    @classmethod
    def of(cls, asked: Enqueued) -> CrawlStarted:
        job = asked.job
        return cls(
            job_id=job.id,
            progress_id=job.id,
            source_id=job.source_id or "",
            status=ShownStatus(job.shown_status),
            created=asked.created,
        )


class Ledger(View):
    """discovered = fetched + unchanged + duplicate + failed + excluded + pending, always."""

    discovered: int
    fetched: int
    unchanged: int
    duplicate: int
    failed: int
    excluded: int
    pending: int
    carried_over: int = Field(
        description="Of the failed ones, pages whose last good version stays published."
    )
    failed_by_reason: dict[str, int]
    carried_over_by_reason: dict[str, int]
    excluded_by_reason: dict[str, int]
    duplicate_by_reason: dict[str, int]
    out_of_scope_links: dict[str, int]
    remarks: dict[str, int]
    sitemaps: dict[str, int]


class GenerationChanges(View):
    """The generation that a crawl builds, compared with the one before."""

    number: int
    state: State
    pages: int
    added: int
    changed: int
    removed: int = Field(description="Known when the crawl is complete.")
    unchanged: int
    carried_over: int
    note: str | None = Field(description="Why it was not published.")


class CrawlProgress(View):
    """How far a crawl is, by its last commit."""

    job_id: UUID
    progress_id: UUID
    source_id: str | None
    status: ShownStatus
    progress_percentage: int = Field(ge=0, le=100)
    stop_reason: str | None
    error_message: str | None
    pages: int
    bytes: int
    depth: int
    seconds: float = Field(description="Time spent running, over all runs.")
    pages_per_second: float
    eta_seconds: float | None = Field(
        description="At the pace so far; null unless it is running and has begun."
    )
    ledger: Ledger
    generation: GenerationChanges | None = Field(
        description="Null before the crawl has begun, and of crawls that keep no documents."
    )

    @classmethod
    def of(cls, report: CrawlReport) -> CrawlProgress:
        left = report.seconds_left
        return cls.model_validate(
            {
                **report.as_json(),
                "progress_id": report.job.id,
                "eta_seconds": None if left is None else round(left, 1),
            }
        )
