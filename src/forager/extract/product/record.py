"""A product as a page describes it, and how sure each of its fields is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum


class Availability(StrEnum):
    IN_STOCK = "in_stock"
    LIMITED = "limited"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    IN_STORE_ONLY = "in_store_only"
    OUT_OF_STOCK = "out_of_stock"
    DISCONTINUED = "discontinued"


class ImageRole(StrEnum):
    PRIMARY = "primary"
    GALLERY = "gallery"
    THUMBNAIL = "thumbnail"


@dataclass(frozen=True, slots=True)
class ProductImage:
    url: str
    alt: str | None = None
    role: ImageRole = ImageRole.GALLERY


@dataclass(frozen=True, slots=True)
class Variant:
    """One form in which a product is sold, where the page lists them."""

    sku: str | None = None
    name: str | None = None
    price: Decimal | None = None
    currency: str | None = None
    availability: Availability | None = None
    gtin: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a field has its value: 0 to 1, and the place in the page that said so."""

    confidence: float
    origin: str


@dataclass(frozen=True, slots=True)
class Product:
    """What is not known is None or empty, never guessed. `evidence` is by field name."""

    name: str | None = None
    description: str | None = None
    price: Decimal | None = None
    list_price: Decimal | None = None
    currency: str | None = None
    availability: Availability | None = None
    rating: Decimal | None = None
    review_count: int | None = None
    brand: str | None = None
    category: tuple[str, ...] = ()
    sku: str | None = None
    gtin: str | None = None
    images: tuple[ProductImage, ...] = ()
    variants: tuple[Variant, ...] = ()
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    # 0 to 1: how much the page looks like the page of one product
    confidence: float = 0.0
