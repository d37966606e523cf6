"""Attempts: a task as a worker holds it, and how one stage of it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from forager.archive.segment import ArchiveRef
from forager.backoff import backoff
from forager.errors import ErrorKind
from forager.failures.cause import Cause
from forager.fetch.polite import DomainTerms
from forager.settings import Settings


class Stage(StrEnum):
    """A stage of a visit: each is claimed separately."""

    DOWNLOAD = "download"
    PARSE = "parse"

    @property
    def status(self) -> str:
        """The status of a task in this stage."""
        return "crawling" if self is Stage.DOWNLOAD else "parsing"

    @classmethod
    def of(cls, status: str) -> Stage:
        return next(stage for stage in cls if stage.status == status)


class TaskOutcome(StrEnum):
    """How an attempt ended."""

    OK = "ok"
    UNCHANGED = "unchanged"
    RETRY = "retry"
    # retries are used up, but the task stays on its schedule
    MISSED = "missed"
    FAILED = "failed"
    # the domain has an alarm
    WITHHELD = "held"
    DEFERRED = "rested"
    LOST = "lost"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedTask:
    """A task with the lease of this worker, as it was claimed."""

    id: int
    lease: int
    domain_id: int
    url: str
    url_hash: bytes
    retry_count: int
    max_retries: int
    etag: str | None
    last_modified: str | None
    parser_version: str | None
    segment: str | None
    segment_offset: int | None
    segment_length: int | None
    domain_name: str
    use_proxies: bool | None
    allow_private: bool
    # of the task, otherwise of its domain
    render: str | None = None
    render_urls: Sequence[str] = ()
    needs_browser: bool = False
    # the decision that it needs one is too old: the next visit checks it
    browser_expired: bool = False
    priority: int = 5
    # where its URL redirects to permanently, if that is the page of its product
    moved_to: str | None = None

    @property
    def address(self) -> str:
        """The URL to request."""
        return self.moved_to or self.url

    @property
    def ref(self) -> ArchiveRef | None:
        if self.segment is None or self.segment_offset is None or self.segment_length is None:
            return None
        return ArchiveRef(self.segment, self.segment_offset, self.segment_length)

    def terms(self, settings: Settings) -> DomainTerms:
        proxies = settings.task_proxies if self.use_proxies is None else self.use_proxies
        return DomainTerms(self.domain_name, proxies, self.allow_private)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The outcome of one stage of a task."""

    task: LeasedTask
    outcome: TaskOutcome = TaskOutcome.OK
    cause: Cause | None = None
    # seconds until the next attempt
    delay: float = 0.0
    http_status: int | None = None
    final_url: str | None = None
    # where permanent redirects lead
    moved_to: str | None = None
    proxy_id: int | None = None
    duration_ms: int | None = None
    size: int | None = None
    ref: ArchiveRef | None = None


@dataclass(frozen=True, slots=True)
class StageOfWorker:
    """The worker and stage of a commit: only its own tasks may be written."""

    worker_id: UUID
    stage: Stage


def failed(attempt: Attempt, cause: Cause, settings: Settings) -> Attempt:
    """The attempt as it failed: retried later, unless that is pointless or no retry is left."""
    task = attempt.task
    if cause.kind is ErrorKind.BLOCKED:
        outcome = TaskOutcome.WITHHELD
    elif cause.permanent or task.retry_count >= task.max_retries:
        outcome = TaskOutcome.FAILED
    else:
        outcome = TaskOutcome.RETRY
    return replace(attempt, outcome=outcome, cause=cause, delay=_retry_delay(task, cause, settings))


def _retry_delay(task: LeasedTask, cause: Cause, settings: Settings) -> float:
    """Seconds before the next attempt: at least Retry-After, and bounded."""
    longest = settings.task_retry_delay_max
    wait = backoff(task.retry_count + 1, settings.task_retry_delay, longest)
    return max(wait, min(cause.retry_after or 0.0, longest))
