"""Crawl state: the URLs a job still has to fetch, and what became of the others."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Index, LargeBinary, SmallInteger, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base

PAGE_WITH_CONTENT = (
    "(outcome IN ('fetched', 'unchanged') OR carried_over) AND content_hash IS NOT NULL"
)


class FrontierEntry(Base):
    """A URL to fetch. No foreign key (it costs a third of an insert): a purge replaces it."""

    __tablename__ = "crawl_frontier"
    __table_args__ = (
        # retries have an index of their own: they are few, and not read in order of discovery
        Index(
            "crawl_frontier_retry_idx",
            "job_id",
            "not_before",
            postgresql_where=text("not_before IS NOT NULL"),
        ),
    )

    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    depth: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    url_hash: Mapped[bytes]
    url: Mapped[str]
    parent: Mapped[bytes | None]
    via: Mapped[str]
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    not_before: Mapped[datetime | None]
    # hashes of the URLs that redirected here, first one first
    redirects: Mapped[list[bytes] | None] = mapped_column(ARRAY(LargeBinary))


class VisitedUrl(Base):
    """A URL that is settled, and what became of it."""

    __tablename__ = "crawl_visited"
    __table_args__ = (
        Index(
            "crawl_visited_content_idx",
            "job_id",
            "content_hash",
            postgresql_where=text(PAGE_WITH_CONTENT),
        ),
        # few, and what people look for first
        Index(
            "crawl_visited_failed_idx",
            "job_id",
            "url_hash",
            postgresql_where=text("outcome = 'failed'"),
        ),
        # who refers to a segment that is to be deleted
        Index(
            "crawl_visited_segment_idx",
            "segment",
            postgresql_where=text("segment IS NOT NULL"),
        ),
    )

    job_id: Mapped[UUID] = mapped_column(primary_key=True)
    url_hash: Mapped[bytes] = mapped_column(primary_key=True)
    url: Mapped[str]
    # fetched, unchanged, duplicate, failed, excluded
    outcome: Mapped[str]
    reason: Mapped[str | None]
    # the reason in words: the rule that excluded it, the error it failed with
    detail: Mapped[str | None]
    duplicate_of: Mapped[str | None]
    # it failed, but the generation keeps the version of the base
    carried_over: Mapped[bool] = mapped_column(server_default=text("false"))
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    depth: Mapped[int] = mapped_column(SmallInteger)
    parent: Mapped[bytes | None]
    via: Mapped[str]
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    content_type: Mapped[str | None]
    title: Mapped[str | None]
    size: Mapped[int | None]
    duration_ms: Mapped[int | None]
    settled_at: Mapped[datetime] = mapped_column(server_default=NOW)
    content_hash: Mapped[bytes | None]
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    # in-scope links of the page, newline-separated, zstd
    outlinks: Mapped[bytes | None]
    segment: Mapped[str | None]
    segment_offset: Mapped[int | None] = mapped_column(BigInteger)
    segment_length: Mapped[int | None]


class ArchiveSegment(Base):
    """A WARC segment; its row is there before its bytes."""

    __tablename__ = "archive_segments"
    __table_args__ = (Index("archive_segments_job_idx", "job_id"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    # who wrote it: a job, or a worker for tasks; it outlives both while something refers to it
    job_id: Mapped[UUID | None]
    worker_id: Mapped[UUID | None]
    # the lease it was written under: whoever holds a later one does not write here
    lease: Mapped[int] = mapped_column(BigInteger)
    bytes: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    records: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    written_at: Mapped[datetime] = mapped_column(server_default=NOW)
    closed_at: Mapped[datetime | None]
    # nothing refers to it any more, and nothing may again: its file is being deleted
    going_at: Mapped[datetime | None]
    # the place that has a checked copy of it
    moved_to: Mapped[str | None]
    # it is part of a merge, and whoever found it before may still read it
    keep_until: Mapped[datetime | None]
