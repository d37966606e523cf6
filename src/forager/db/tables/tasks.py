"""Tasks: URLs kept fresh on a schedule, every attempt at them, and what went wrong."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Interval,
    SmallInteger,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, RowNumber

TASK_STATUSES = (
    "pending",
    "queued",
    "crawling",
    "downloaded",
    "parsing",
    "completed",
    "failed",
)
_STATUSES = ", ".join(f"'{status}'" for status in TASK_STATUSES)
HOLDS = "('paused', 'stopped')"
STAGES = "('download', 'parse')"


class CrawlTask(Base):
    """One URL kept fresh. Each state has a small index of its own instead of one over all rows.

    A worker holds a task by (`worker_id`, `lease`); the lease goes up with every claim and every
    revocation, and whoever has an older one writes nothing.
    """

    __tablename__ = "crawl_tasks"
    __table_args__ = (
        CheckConstraint(f"status IN ({_STATUSES})", name="status"),
        CheckConstraint("priority BETWEEN 1 AND 10", name="priority"),
        CheckConstraint("retry_count >= 0 AND max_retries >= 0", name="retries"),
        CheckConstraint("crawl_frequency > interval '0'", name="crawl_frequency"),
        CheckConstraint(f"hold IN {HOLDS}", name="hold"),
        CheckConstraint(
            "(worker_id IS NOT NULL) = (status IN ('crawling', 'parsing'))", name="worker_id"
        ),
        Index("crawl_tasks_url_hash_key", "url_hash", unique=True),
        Index("crawl_tasks_domain_idx", "domain_id", "id"),
        Index("crawl_tasks_hold_idx", "id", postgresql_where=text("hold IS NOT NULL")),
        Index(
            "crawl_tasks_pending_idx",
            "domain_id",
            "priority",
            "scheduled_at",
            text("popularity DESC"),
            "id",
            # held ones are not in the scheduler's way, however many there are
            postgresql_where=text("status = 'pending' AND hold IS NULL"),
        ),
        Index(
            "crawl_tasks_queued_idx",
            "priority",
            "scheduled_at",
            text("popularity DESC"),
            "id",
            postgresql_where=text("status = 'queued'"),
        ),
        Index(
            "crawl_tasks_downloaded_idx",
            "priority",
            "scheduled_at",
            "id",
            postgresql_where=text("status = 'downloaded'"),
        ),
        Index("crawl_tasks_held_idx", "worker_id", postgresql_where=text("worker_id IS NOT NULL")),
        Index(
            "crawl_tasks_next_crawl_idx",
            "next_crawl_at",
            postgresql_where=text("status = 'completed'"),
        ),
        Index(
            "crawl_tasks_failed_idx",
            "domain_id",
            "id",
            postgresql_where=text("status = 'failed'"),
        ),
        Index("crawl_tasks_segment_idx", "segment", postgresql_where=text("segment IS NOT NULL")),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[RowNumber]
    domain_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("domains.id"))
    url: Mapped[str]
    # SHA-256 of the normalised URL
    url_hash: Mapped[bytes]
    status: Mapped[str] = mapped_column(server_default="pending")
    # 1 is highest
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("5"))
    popularity: Mapped[float] = mapped_column(Float, server_default=text("0"))
    # when it may start; a retry's waits out its backoff
    scheduled_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # this round's claim and end, the last round's while it waits
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    retry_count: Mapped[int] = mapped_column(server_default=text("0"))
    max_retries: Mapped[int] = mapped_column(server_default=text("3"))
    error_kind: Mapped[str | None]
    error_message: Mapped[str | None]
    # as somebody asked for it; without: the domain's, then the setting's
    crawl_frequency: Mapped[timedelta | None] = mapped_column(Interval)
    # where adaptive scheduling has arrived
    adapted_frequency: Mapped[timedelta | None] = mapped_column(Interval)
    next_crawl_at: Mapped[datetime | None]
    hold: Mapped[str | None]
    lease: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    worker_id: Mapped[UUID | None]
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    # the version of the parser that read the archived page: validators count while it is current
    parser_version: Mapped[str | None]
    segment: Mapped[str | None]
    segment_offset: Mapped[int | None] = mapped_column(BigInteger)
    segment_length: Mapped[int | None]
    # how it came to be tracked: a person, a file, the crawl that found it
    found_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class TaskControl(Base):
    """One row: what holds for all tasks."""

    __tablename__ = "task_control"
    __table_args__ = (
        CheckConstraint("singleton", name="singleton"),
        CheckConstraint(f"hold IN {HOLDS}", name="hold"),
    )

    singleton: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    hold: Mapped[str | None]
    # the scheduler's last tick, so that people see whether one runs
    ticked_at: Mapped[datetime | None]


class TaskAttempt(Base):
    """One attempt at one stage of a task: the audit trail. Deleted by age."""

    __tablename__ = "task_attempts"
    __table_args__ = (
        CheckConstraint(f"stage IN {STAGES}", name="stage"),
        Index("task_attempts_task_idx", "task_id", "id"),
        Index("task_attempts_finished_idx", "finished_at"),
        Index("task_attempts_segment_idx", "segment", postgresql_where=text("segment IS NOT NULL")),
    )

    id: Mapped[RowNumber]
    task_id: Mapped[int] = mapped_column(BigInteger)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    stage: Mapped[str]
    lease: Mapped[int] = mapped_column(BigInteger)
    attempt: Mapped[int] = mapped_column(SmallInteger)
    # ok, unchanged, retry, failed, rested, lost, withdrawn
    outcome: Mapped[str]
    error_kind: Mapped[str | None]
    error_message: Mapped[str | None]
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    # where redirects ended, if there were any
    final_url: Mapped[str | None]
    proxy_id: Mapped[int | None] = mapped_column(BigInteger)
    worker_id: Mapped[UUID | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime] = mapped_column(server_default=NOW)
    duration_ms: Mapped[int | None]
    size: Mapped[int | None]
    segment: Mapped[str | None]
    segment_offset: Mapped[int | None] = mapped_column(BigInteger)
    segment_length: Mapped[int | None]


class ErrorLog(Base):
    """One error of a task or a job, with its cause. Deleted by age."""

    __tablename__ = "error_logs"
    __table_args__ = (
        Index("error_logs_occurred_idx", "occurred_at"),
        Index("error_logs_group_idx", "domain_id", "error_type", "message_key", "occurred_at"),
        Index(
            "error_logs_task_idx",
            "crawl_task_id",
            "id",
            postgresql_where=text("crawl_task_id IS NOT NULL"),
        ),
    )

    id: Mapped[RowNumber]
    crawl_task_id: Mapped[int | None] = mapped_column(BigInteger)
    job_id: Mapped[UUID | None]
    domain_id: Mapped[int | None] = mapped_column(BigInteger)
    stage: Mapped[str]
    # network, http, parse, validation, other: what people group by
    error_type: Mapped[str]
    error_kind: Mapped[str]
    error_message: Mapped[str]
    # the message without its numbers and addresses, so that equal causes group
    message_key: Mapped[str]
    stack_trace: Mapped[str | None]
    url: Mapped[str | None]
    occurred_at: Mapped[datetime] = mapped_column(server_default=NOW)


class DeadLetter(Base):
    """A task that failed for good, until somebody retries or drops it."""

    __tablename__ = "dead_letters"
    __table_args__ = (
        CheckConstraint("resolution IN ('retried', 'dropped')", name="resolution"),
        CheckConstraint("(resolution IS NULL) = (resolved_at IS NULL)", name="resolved_at"),
        Index(
            "dead_letters_open_key",
            "task_id",
            unique=True,
            postgresql_where=text("resolved_at IS NULL"),
        ),
        Index(
            "dead_letters_cause_idx",
            "error_kind",
            "domain_id",
            "id",
            postgresql_where=text("resolved_at IS NULL"),
        ),
        Index(
            "dead_letters_resolved_idx",
            "resolved_at",
            postgresql_where=text("resolved_at IS NOT NULL"),
        ),
    )

    id: Mapped[RowNumber]
    task_id: Mapped[int] = mapped_column(BigInteger)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str]
    stage: Mapped[str]
    error_type: Mapped[str]
    error_kind: Mapped[str]
    error_message: Mapped[str]
    message_key: Mapped[str]
    attempts: Mapped[int]
    died_at: Mapped[datetime] = mapped_column(server_default=NOW)
    resolved_at: Mapped[datetime | None]
    resolution: Mapped[str | None]


class DispatchMessage(Base):
    """Tasks of one domain that wait for a worker, to be told to a broker. Deleted when it knows."""

    __tablename__ = "dispatch_outbox"
    __table_args__ = (
        CheckConstraint("stage IN ('crawl', 'parse')", name="stage"),
        CheckConstraint("band BETWEEN 1 AND 3", name="band"),
        Index("dispatch_outbox_order_idx", "band", "id"),
    )

    id: Mapped[RowNumber]
    stage: Mapped[str]
    # of priorities: 1 leaves first
    band: Mapped[int] = mapped_column(SmallInteger)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    task_ids: Mapped[list[int]] = mapped_column(ARRAY(BigInteger))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
