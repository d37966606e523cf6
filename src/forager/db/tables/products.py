"""Products: what is known of each, its prices over time, its images, and who read what how."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    Float,
    ForeignKey,
    Index,
    Numeric,
    SmallInteger,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TEXT, TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, Json, RowNumber

MONEY = Numeric(14, 4)
EMPTY_OBJECT = text("'{}'")
EMPTY_LIST = text("'[]'")


class Product(Base):
    """The latest state of one product page. `updated_at` moves only when its content changed."""

    __tablename__ = "products"
    __table_args__ = (
        CheckConstraint("price >= 0 AND list_price >= 0", name="price"),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency"),
        CheckConstraint("rating BETWEEN 0 AND 5", name="rating"),
        CheckConstraint("review_count >= 0", name="review_count"),
        Index("products_url_hash_key", "url_hash", unique=True),
        Index("products_domain_idx", "domain_id", "created_at", "id"),
        Index("products_task_idx", "crawl_task_id"),
        Index("products_name_idx", text("left(product_name, 200)")),
        Index("products_price_idx", "price", "id"),
        Index(
            "products_problems_idx",
            "created_at",
            "id",
            postgresql_where=text("problems <> '[]'"),
        ),
        Index("products_availability_idx", "availability", "created_at", "id"),
        Index("products_created_idx", "created_at", "id"),
        Index("products_updated_idx", "updated_at", "id"),
        Index("products_brand_idx", text("lower(brand)"), "created_at", "id"),
        Index("products_category_idx", text("lower(left(category, 200))"), "created_at", "id"),
        Index("products_tsv_idx", "tsv", postgresql_using="gin"),
        {"postgresql_with": {"fillfactor": "80"}},
    )

    id: Mapped[RowNumber]
    domain_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("domains.id"))
    crawl_task_id: Mapped[int | None] = mapped_column(
        BigInteger, ForeignKey("crawl_tasks.id", ondelete="SET NULL")
    )
    url: Mapped[str]
    url_hash: Mapped[bytes]
    product_name: Mapped[str]
    description: Mapped[str | None]
    price: Mapped[Decimal | None] = mapped_column(MONEY)
    list_price: Mapped[Decimal | None] = mapped_column(MONEY)
    # ISO 4217; unknown is NULL, never assumed
    currency: Mapped[str | None]
    availability: Mapped[str | None]
    rating: Mapped[Decimal | None] = mapped_column(Numeric(3, 2))
    review_count: Mapped[int | None] = mapped_column(BigInteger)
    brand: Mapped[str | None]
    # the path, joined with " > "
    category: Mapped[str | None]
    sku: Mapped[str | None]
    gtin: Mapped[str | None]
    variants: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_LIST)
    content_hash: Mapped[bytes]
    # by field: confidence and origin
    evidence: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_OBJECT)
    # what validation found: a list of {field, rule, message}
    problems: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_LIST)
    metadata_: Mapped[Json] = mapped_column("metadata", JSONB, server_default=EMPTY_OBJECT)
    parser: Mapped[str]
    parser_version: Mapped[str]
    language: Mapped[str | None]
    tsv: Mapped[Any] = mapped_column(TSVECTOR, server_default=text("''"))
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # changes with every visit, and is in no index
    last_seen_at: Mapped[datetime] = mapped_column(server_default=NOW)
    price_changed_at: Mapped[datetime | None]
    # it was archived, and came back from its file
    restored_at: Mapped[datetime | None]


class PriceChange(Base):
    """A product's offer from this moment on; one row for each change."""

    __tablename__ = "price_history"
    __table_args__ = (
        Index("price_history_product_idx", "product_id", "recorded_at", "id"),
        Index("price_history_recorded_idx", "recorded_at"),
    )

    id: Mapped[RowNumber]
    product_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("products.id", ondelete="CASCADE")
    )
    price: Mapped[Decimal | None] = mapped_column(MONEY)
    list_price: Mapped[Decimal | None] = mapped_column(MONEY)
    currency: Mapped[str | None]
    availability: Mapped[str | None]
    recorded_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Extraction(Base):
    """What one version of one parser made of one archived page. Deleted by age."""

    __tablename__ = "extractions"
    __table_args__ = (
        CheckConstraint("role IN ('active', 'canary')", name="role"),
        CheckConstraint("outcome IN ('ok', 'suspect', 'incomplete', 'failed')", name="outcome"),
        Index("extractions_task_idx", "task_id", "id"),
        Index("extractions_domain_idx", "domain_id", "role", "id"),
        Index("extractions_parser_idx", "parser", "parser_version", "id"),
        Index("extractions_created_idx", "created_at"),
        Index("extractions_segment_idx", "segment", postgresql_where=text("segment IS NOT NULL")),
    )

    id: Mapped[RowNumber]
    task_id: Mapped[int] = mapped_column(BigInteger)
    product_id: Mapped[int | None] = mapped_column(BigInteger)
    domain_id: Mapped[int] = mapped_column(BigInteger)
    url: Mapped[str]
    parser: Mapped[str]
    parser_version: Mapped[str]
    role: Mapped[str] = mapped_column(server_default="active")
    # ok; suspect: stored but marked; incomplete: no product; failed: the parser broke
    outcome: Mapped[str]
    confidence: Mapped[float | None] = mapped_column(Float)
    fields: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_OBJECT)
    evidence: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_OBJECT)
    problems: Mapped[Json] = mapped_column(JSONB, server_default=EMPTY_LIST)
    error_message: Mapped[str | None]
    segment: Mapped[str | None]
    segment_offset: Mapped[int | None] = mapped_column(BigInteger)
    segment_length: Mapped[int | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ParseRate(Base):
    """How many pages of a domain a parser's version could read on one day."""

    __tablename__ = "parse_rates"
    __table_args__ = ({"postgresql_with": {"fillfactor": "70"}},)

    domain_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    parser: Mapped[str] = mapped_column(primary_key=True)
    parser_version: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[datetime] = mapped_column(Date, primary_key=True)
    pages: Mapped[int] = mapped_column(server_default=text("0"))
    good: Mapped[int] = mapped_column(server_default=text("0"))


class ParserRollout(Base):
    """Which version of a parser counts, and which one is tried beside it."""

    __tablename__ = "parser_rollouts"
    __table_args__ = (
        CheckConstraint("canary_share > 0 AND canary_share <= 1", name="canary_share"),
        CheckConstraint("(canary_version IS NULL) = (canary_share IS NULL)", name="canary_version"),
    )

    parser: Mapped[str] = mapped_column(primary_key=True)
    active_version: Mapped[str]
    previous_version: Mapped[str | None]
    canary_version: Mapped[str | None]
    canary_share: Mapped[float | None] = mapped_column(Float)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Image(Base):
    """One image of one product, and what became of it."""

    __tablename__ = "images"
    __table_args__ = (
        CheckConstraint("image_type IN ('primary', 'gallery', 'thumbnail')", name="image_type"),
        CheckConstraint("status IN ('pending', 'stored', 'refused', 'failed')", name="status"),
        Index("images_product_idx", "product_id", "position"),
        Index("images_url_key", "product_id", "url_hash", unique=True),
        Index("images_file_idx", "content_hash"),
        Index(
            "images_known_idx",
            "url_hash",
            "fetched_at",
            postgresql_where=text("status = 'stored'"),
        ),
        Index(
            "images_pending_idx",
            "next_attempt_at",
            "id",
            postgresql_where=text("status = 'pending'"),
        ),
        {"postgresql_with": {"fillfactor": "80"}},
    )

    id: Mapped[RowNumber]
    product_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("products.id", ondelete="CASCADE")
    )
    image_url: Mapped[str]
    url_hash: Mapped[bytes]
    image_path: Mapped[str | None]
    alt_text: Mapped[str | None]
    image_type: Mapped[str] = mapped_column(server_default="primary")
    position: Mapped[int] = mapped_column(server_default=text("0"))
    width: Mapped[int | None]
    height: Mapped[int | None]
    file_size: Mapped[int | None]
    content_hash: Mapped[bytes | None]
    status: Mapped[str] = mapped_column(server_default="pending")
    problem: Mapped[str | None]
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    # also how long whoever took it may work on it
    next_attempt_at: Mapped[datetime] = mapped_column(server_default=NOW)
    fetched_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ImageFile(Base):
    """An image file, stored once however many products show it.

    The row comes before the file, and goes after it.
    """

    __tablename__ = "image_files"

    content_hash: Mapped[bytes] = mapped_column(primary_key=True)
    path: Mapped[str]
    media_type: Mapped[str]
    width: Mapped[int]
    height: Mapped[int]
    file_size: Mapped[int]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # when somebody last meant to refer to it; a file is not deleted for a while after that
    touched_at: Mapped[datetime] = mapped_column(server_default=NOW)
    going_at: Mapped[datetime | None]
    # the place that has a checked copy of it
    moved_to: Mapped[str | None]


class CatalogEvent(Base):
    """Something that happened to a product or a domain; never changed, deleted by age."""

    __tablename__ = "catalog_events"
    __table_args__ = (
        Index("catalog_events_product_idx", "product_id", "id"),
        Index("catalog_events_kind_idx", "kind", "id"),
        Index("catalog_events_occurred_idx", "occurred_at"),
    )

    id: Mapped[RowNumber]
    kind: Mapped[str]
    product_id: Mapped[int | None] = mapped_column(BigInteger)
    domain_id: Mapped[int | None] = mapped_column(BigInteger)
    payload: Mapped[Json]
    occurred_at: Mapped[datetime] = mapped_column(server_default=NOW)


class Webhook(Base):
    """An address that wants to hear of events."""

    __tablename__ = "webhooks"
    __table_args__ = (Index("webhooks_url_key", "url", unique=True),)

    id: Mapped[RowNumber]
    url: Mapped[str]
    # encrypted with the installation's key
    secret: Mapped[bytes]
    # kinds of events; empty: all
    kinds: Mapped[list[str]] = mapped_column(ARRAY(TEXT), server_default=text("'{}'"))
    domain_id: Mapped[int | None] = mapped_column(BigInteger)
    allow_private: Mapped[bool] = mapped_column(server_default=text("false"))
    is_active: Mapped[bool] = mapped_column(server_default=text("true"))
    disabled_reason: Mapped[str | None]
    # in a row; while there are any it rests, and is then tried with one message
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    rests_until: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class OutboxMessage(Base):
    """Something that must leave: an id, not a state. Written with what it tells of."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index(
            "outbox_unsent_idx",
            "topic",
            "target_id",
            "next_attempt_at",
            "id",
            postgresql_where=text("sent_at IS NULL AND given_up_at IS NULL"),
        ),
        Index(
            "outbox_done_idx",
            text("coalesce(sent_at, given_up_at)"),
            postgresql_where=text("coalesce(sent_at, given_up_at) IS NOT NULL"),
        ),
        Index("outbox_target_idx", "topic", "target_id", "id"),
        Index("outbox_claimed_idx", "claimed_by", postgresql_where=text("claimed_by IS NOT NULL")),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[RowNumber]
    topic: Mapped[str]
    # what it tells of: an event, a task, a document
    ref_id: Mapped[int] = mapped_column(BigInteger)
    # whom it is for, where there can be several: a webhook
    target_id: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    next_attempt_at: Mapped[datetime] = mapped_column(server_default=NOW)
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    last_error: Mapped[str | None]
    sent_at: Mapped[datetime | None]
    given_up_at: Mapped[datetime | None]
    # the service process that sends it now; released when that process is gone
    claimed_by: Mapped[UUID | None]
