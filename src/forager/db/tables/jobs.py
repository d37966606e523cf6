"""The job queue: jobs, their checkpoints, their history, and the workers that run them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Enum,
    Float,
    ForeignKey,
    Index,
    SmallInteger,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, Json, RowNumber

JOB_STATUSES = ("pending", "processing", "completed", "failed", "cancelled", "paused")
job_status = Enum(*JOB_STATUSES, name="job_status")

ACTIVE = "status IN ('pending', 'processing', 'paused')"


class CrawlJob(Base):
    """One job. `last_heartbeat` and the counters are in no index: their updates stay HOT."""

    __tablename__ = "crawl_jobs"
    __table_args__ = (
        CheckConstraint("progress_percentage BETWEEN 0 AND 100", name="progress_percentage"),
        CheckConstraint("retry_count >= 0 AND max_retries >= 0", name="retries"),
        CheckConstraint("jsonb_typeof(payload) = 'object'", name="payload"),
        # a job that runs has a worker; otherwise only one that is about to pause may have one
        CheckConstraint(
            "CASE status WHEN 'processing' THEN worker_id IS NOT NULL"
            " AND last_heartbeat IS NOT NULL WHEN 'paused' THEN true"
            " ELSE worker_id IS NULL END",
            name="worker_id",
        ),
        Index(
            "crawl_jobs_claim_idx",
            text("priority DESC"),
            "created_at",
            "id",
            "run_after",
            postgresql_where=text("status = 'pending'"),
        ),
        Index("crawl_jobs_held_idx", "id", postgresql_where=text("worker_id IS NOT NULL")),
        Index(
            "crawl_jobs_active_source_idx",
            "source_id",
            unique=True,
            postgresql_where=text(f"source_id IS NOT NULL AND {ACTIVE}"),
        ),
        Index("crawl_jobs_status_idx", "status", "created_at", "id"),
        Index("crawl_jobs_created_idx", "created_at", "id"),
        Index("crawl_jobs_source_idx", "source_id", "created_at"),
        Index("crawl_jobs_user_idx", "user_id", "created_at"),
        Index(
            "crawl_jobs_finished_idx",
            "completed_at",
            postgresql_where=text("status IN ('completed', 'failed', 'cancelled')"),
        ),
        # room on each page for the next version of a row that is beaten every ten seconds
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    payload: Mapped[Json]
    priority: Mapped[int] = mapped_column(server_default=text("0"))
    status: Mapped[str] = mapped_column(job_status, server_default="pending")
    worker_id: Mapped[UUID | None]
    lease: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    progress_percentage: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    run_after: Mapped[datetime] = mapped_column(server_default=NOW)
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    last_heartbeat: Mapped[datetime | None]
    retry_count: Mapped[int] = mapped_column(server_default=text("0"))
    max_retries: Mapped[int] = mapped_column(server_default=text("3"))
    error_message: Mapped[str | None]
    stop_reason: Mapped[str | None]
    source_id: Mapped[str | None]
    user_id: Mapped[UUID | None]
    # where it was asked for, as a W3C traceparent; read only where traces are sent
    trace: Mapped[str | None]
    # the host it is about, and the region of that host's domain: only its workers claim it
    host: Mapped[str | None]
    region: Mapped[str | None]


class CrawlState(Base):
    """What a job has done and still has to do, written with each of its commits.

    The ledger's counters are here, and a constraint balances them at every commit.
    """

    __tablename__ = "crawl_states"
    __table_args__ = (
        CheckConstraint("total_processed >= 0 AND total_pending >= 0", name="totals"),
        CheckConstraint(
            "discovered = fetched + unchanged + duplicate + failed + excluded + total_pending"
            " OR discovered IS NULL",
            name="ledger",
        ),
        CheckConstraint("pace >= 0 AND pace < 'Infinity'", name="pace"),
        {"postgresql_with": {"fillfactor": "50"}},
    )

    job_id: Mapped[UUID] = mapped_column(
        ForeignKey("crawl_jobs.id", ondelete="CASCADE"), primary_key=True
    )
    total_processed: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    total_pending: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    current_depth: Mapped[int] = mapped_column(server_default=text("0"))
    # NULL for jobs that are not crawls and keep no ledger
    discovered: Mapped[int | None] = mapped_column(BigInteger)
    fetched: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    unchanged: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    duplicate: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    failed: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    excluded: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # counts by reason: of failed, excluded, duplicate and out-of-scope URLs, and of remarks
    reasons: Mapped[Json] = mapped_column(JSONB, server_default=text("'{}'"))
    bytes_fetched: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    seconds: Mapped[float] = mapped_column(Float, server_default=text("0"))
    next_seq: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    # what the crawl waits for and how fast it is, written also while nothing is committed
    waits_for: Mapped[str | None]
    waits_until: Mapped[datetime | None]
    pace: Mapped[float] = mapped_column(Float, server_default=text("0"))
    reported_at: Mapped[datetime | None]
    checkpoint: Mapped[Json] = mapped_column(JSONB, server_default=text("'{}'"))
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class JobEvent(Base):
    """One move of one job: who, when, from, to, why."""

    __tablename__ = "job_events"
    __table_args__ = (Index("job_events_job_idx", "job_id", "id"),)

    id: Mapped[RowNumber]
    job_id: Mapped[UUID] = mapped_column(ForeignKey("crawl_jobs.id", ondelete="CASCADE"))
    at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    move: Mapped[str]
    from_status: Mapped[str | None] = mapped_column(job_status)
    to_status: Mapped[str] = mapped_column(job_status)
    actor: Mapped[str]
    reason: Mapped[str | None]
    lease: Mapped[int] = mapped_column(BigInteger)


class Worker(Base):
    """A worker process that is, or lately was, there."""

    __tablename__ = "workers"
    __table_args__ = ({"postgresql_with": {"fillfactor": "70"}},)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    # who it is on its machine, so that others there can tell when it has died
    process: Mapped[str | None]
    version: Mapped[str]
    capacity: Mapped[int]
    started_at: Mapped[datetime] = mapped_column(server_default=NOW)
    last_seen: Mapped[datetime] = mapped_column(server_default=NOW)
    state: Mapped[str] = mapped_column(server_default="running")
    # what it does: jobs, or tasks
    role: Mapped[str] = mapped_column(server_default="jobs")
    region: Mapped[str | None]
    note: Mapped[str | None]
