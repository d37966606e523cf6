"""Documents: sources, their generations, the pages in them, and what search looks at.

Manifests, documents, sections and search rows have no foreign keys: their check costs a third of
an insert. Whoever deletes holds the source's row and knows that no job of the source is running.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, Json, RowNumber

GENERATION_STATES = ("building", "published", "retired", "abandoned")

# a path may be longer than an index entry can be
PATH_ORDER = "left(path, 600)"


class Source(Base):
    """What a user wants crawled as one unit; `published_generation` is what readers see."""

    __tablename__ = "sources"
    __table_args__ = (
        CheckConstraint("keep_generations >= 1", name="keep_generations"),
        CheckConstraint("max_shrink >= 0 AND max_failed >= 0", name="gate"),
        CheckConstraint("refresh_every IS NULL OR refresh_cron IS NULL", name="refresh"),
        CheckConstraint("jsonb_typeof(payload) = 'object'", name="payload"),
        Index("sources_number_key", "number", unique=True),
        Index("sources_user_idx", "user_id"),
        Index(
            "sources_next_refresh_idx",
            "next_refresh_at",
            postgresql_where=text("next_refresh_at IS NOT NULL"),
        ),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    # the source as a lexeme in its search rows: § and this number
    number: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    base_url: Mapped[str]
    user_id: Mapped[UUID | None]
    published_generation: Mapped[int | None] = mapped_column(BigInteger)
    # how many generations it ever had
    generations: Mapped[int] = mapped_column(server_default=text("0"))
    # a text search configuration; NULL until the first pages say which language they are in
    text_config: Mapped[str | None]
    keep_generations: Mapped[int] = mapped_column(server_default=text("5"))
    # the gate: by what share pages may fall, and what share of the tried URLs may fail
    max_shrink: Mapped[float] = mapped_column(Float, server_default=text("0.2"))
    max_failed: Mapped[float] = mapped_column(Float, server_default=text("0.1"))
    # the job that refreshes it: kind and payload of the last one that was published
    kind: Mapped[str]
    payload: Mapped[Json] = mapped_column(JSONB)
    refresh_every: Mapped[int | None]
    refresh_cron: Mapped[str | None]
    next_refresh_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # hidden from readers; the row goes when its generations are gone
    deleted_at: Mapped[datetime | None]


class Generation(Base):
    """The pages that one job found.

    `retired` is complete, but not what readers see: it was published before, or refused
    (`published_at` is NULL, `note` says why). `abandoned` is being deleted.
    """

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint("state IN ('building', 'published', 'retired', 'abandoned')", name="state"),
        Index("generations_number_key", "source_id", "number", unique=True),
        Index(
            "generations_published_key",
            "source_id",
            unique=True,
            postgresql_where=text("state = 'published'"),
        ),
        Index("generations_job_idx", "job_id"),
        Index(
            "generations_building_key",
            "job_id",
            unique=True,
            postgresql_where=text("state = 'building'"),
        ),
        {"postgresql_with": {"fillfactor": "50"}},
    )

    id: Mapped[RowNumber]
    source_id: Mapped[str] = mapped_column(ForeignKey("sources.id"))
    number: Mapped[int]
    state: Mapped[str] = mapped_column(server_default="building")
    # no foreign key: a generation outlives the job that made it
    job_id: Mapped[UUID | None]
    # what was published when the job began, and what it is compared with
    base_id: Mapped[int | None] = mapped_column(BigInteger)
    pages: Mapped[int] = mapped_column(server_default=text("0"))
    added: Mapped[int] = mapped_column(server_default=text("0"))
    changed: Mapped[int] = mapped_column(server_default=text("0"))
    unchanged: Mapped[int] = mapped_column(server_default=text("0"))
    # pages that could not be fetched, and are listed as they were in the base
    carried_over: Mapped[int] = mapped_column(server_default=text("0"))
    # known when it is complete
    removed: Mapped[int] = mapped_column(server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    published_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    note: Mapped[str | None]


class Document(Base):
    """One immutable version of one page of a source."""

    __tablename__ = "documents"
    __table_args__ = (
        Index(
            "documents_version_key",
            "source_id",
            "url_hash",
            "content_hash",
            "extractor_version",
            unique=True,
        ),
        Index("documents_path_idx", "source_id", text(PATH_ORDER), "id"),
    )

    id: Mapped[RowNumber]
    source_id: Mapped[str]
    url_hash: Mapped[bytes]
    content_hash: Mapped[bytes]
    extractor_version: Mapped[str]
    url: Mapped[str]
    # the collation under which a beginning of a path is a range of the index
    path: Mapped[str] = mapped_column(Text(collation="C"))
    title: Mapped[str | None]
    language: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class GenerationDocument(Base):
    """One line of a manifest: a page of a generation, and which document it is."""

    __tablename__ = "generation_documents"
    __table_args__ = (
        # the other order: which generations still need a document, and search's filter
        Index("generation_documents_document_idx", "document_id", "generation_id"),
        Index("generation_documents_link_set_idx", "link_set"),
        Index(
            "generation_documents_segment_idx",
            "segment",
            postgresql_where=text("segment IS NOT NULL"),
        ),
        CheckConstraint(
            "num_nonnulls(carried_since, carried_reason, carried_times) IN (0, 3)",
            name="carried",
        ),
    )

    generation_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    url_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    document_id: Mapped[int] = mapped_column(BigInteger)
    etag: Mapped[str | None]
    last_modified: Mapped[str | None]
    link_set: Mapped[bytes | None]
    segment: Mapped[str | None]
    segment_offset: Mapped[int | None] = mapped_column(BigInteger)
    segment_length: Mapped[int | None]
    # when the server last sent or confirmed this version
    fetched_at: Mapped[datetime]
    # of a page that is carried over: since when it fails, why, and in how many refreshes in a row
    carried_since: Mapped[datetime | None]
    carried_reason: Mapped[str | None]
    carried_times: Mapped[int | None]


class LinkSet(Base):
    """The links of a page, shared by all pages and generations of a source that have the same."""

    __tablename__ = "link_sets"

    source_id: Mapped[str] = mapped_column(primary_key=True)
    hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    # in-scope links, newline-separated, zstd: as crawl_visited.outlinks
    links: Mapped[bytes]


class Section(Base):
    """A heading with its text; `position` counts from 0 in the order of the page."""

    __tablename__ = "sections"
    __table_args__ = (Index("sections_document_idx", "document_id", "position", unique=True),)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(BigInteger)
    parent_id: Mapped[UUID | None]
    heading: Mapped[str]
    level: Mapped[int] = mapped_column(SmallInteger)
    anchor: Mapped[str | None]
    content: Mapped[str]
    position: Mapped[int]


class SectionSearch(Base):
    """What search ranks: narrow, so that many rows can be looked at. Its section has the same key.

    Both vectors hold the source as a lexeme, so that one source is found by the index alone.
    """

    __tablename__ = "section_search"
    __table_args__ = (
        # large pending lists: their flush would otherwise be part of a crawl's commit. The upkeep
        # flushes them in the background.
        Index(
            "section_search_head_idx",
            "head_tsv",
            postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": "16384"},
        ),
        Index(
            "section_search_idx",
            "tsv",
            postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": "32768"},
        ),
    )

    document_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    position: Mapped[int] = mapped_column(primary_key=True)
    head_tsv: Mapped[str] = mapped_column(TSVECTOR)
    tsv: Mapped[str] = mapped_column(TSVECTOR)
