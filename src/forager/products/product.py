"""Products and their parts as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from forager.amounts import amount_text


@dataclass(frozen=True, slots=True)
class ProductColumns:
    """The columns of a product that lists and details have in common."""

    id: int
    url: str
    domain: str
    name: str
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    rating: Decimal | None
    review_count: int | None
    brand: str | None
    category: str | None
    sku: str | None
    gtin: str | None
    created_at: datetime
    updated_at: datetime
    last_seen_at: datetime
    price_changed_at: datetime | None
    # since when visits of its page fail after all retries
    failing_since: datetime | None


@dataclass(frozen=True, slots=True)
class ListedProduct(ProductColumns):
    """A product as a list shows it."""

    # number of fields that violate a rule
    problems: int
    # the last change of the price, in percent
    price_change: float | None


@dataclass(frozen=True, slots=True)
class ProductRecord(ProductColumns):
    """All columns of a product, and the state of its task."""

    description: str | None
    variants: list[dict[str, Any]]
    # by field: confidence and origin
    evidence: dict[str, dict[str, Any]]
    problems: list[dict[str, Any]]
    metadata: dict[str, Any]
    parser: str
    parser_version: str
    language: str | None
    task_id: int | None
    task_status: str | None
    task_hold: str | None
    task_error: str | None
    crawl_frequency: timedelta | None
    next_crawl_at: datetime | None


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """An image of a product."""

    url: str
    type: str
    position: int
    alt_text: str | None
    status: str
    problem: str | None
    width: int | None
    height: int | None
    file_size: int | None
    path: str | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt to download or to parse the page of a task."""

    stage: str
    attempt: int
    outcome: str
    error_kind: str | None
    error_message: str | None
    http_status: int | None
    final_url: str | None
    proxy_id: int | None
    worker_id: UUID | None
    started_at: datetime | None
    finished_at: datetime
    duration_ms: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """One reading of a page, and what was wrong with it."""

    id: int
    parser: str
    parser_version: str
    role: str
    outcome: str
    confidence: float | None
    problems: list[dict[str, Any]]
    error_message: str | None
    archive: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule: for one product, or for all products that the selection matches."""

    id: int
    kind: str
    percent: Decimal | None
    amount: Decimal | None
    currency: str | None
    days: int | None
    product_id: int | None
    product_url: str | None
    # filters of products by name; empty: all products
    selection: dict[str, Any]
    created_at: datetime
    last_triggered_at: datetime | None = None

    @property
    def condition(self) -> str:
        """The condition in words: price below 40 EUR."""
        text = self.kind.replace("_", " ")
        if self.percent is not None:
            text += f" of {amount_text(self.percent)} %"
        if self.amount is not None:
            text += f" {amount_text(self.amount)}"
        if self.currency is not None:
            text += f" {self.currency}"
        return text if self.days is None else f"{text} in {self.days} d"

    @property
    def scope(self) -> str:
        """The products of the rule in words."""
        if self.product_id is not None:
            return self.product_url or f"product {self.product_id}"
        chosen = [f"{name} {value}" for name, value in self.selection.items()]
        return ", ".join(chosen) or "all products"
