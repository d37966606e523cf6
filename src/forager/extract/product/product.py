"""The product of a page, and the confidence of each of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Availability(StrEnum):
    """Whether a product can be ordered, as schema.org names it."""

    IN_STOCK = "in_stock"
    LIMITED = "limited"
    PREORDER = "preorder"
    BACKORDER = "backorder"
    IN_STORE_ONLY = "in_store_only"
    OUT_OF_STOCK = "out_of_stock"
    DISCONTINUED = "discontinued"
    # the shop names its price to those who ask
    ON_REQUEST = "on_request"


GONE = (Availability.OUT_OF_STOCK, Availability.DISCONTINUED)


class ImageRole(StrEnum):
    """The place of an image on its page."""

    PRIMARY = "primary"
    GALLERY = "gallery"
    THUMBNAIL = "thumbnail"


@dataclass(frozen=True, slots=True)
class ProductImage:
    """An image of a product."""

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
    """The confidence of a field, from 0 to 1, and the place in the page that states it."""

    confidence: float
    origin: str
    # the path at which the page shows what its data states; empty: not at the learned path
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Product:
    """Unknown fields are None or empty, never guessed. `evidence` is by field name."""

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
    # the code that a visitor sees, where the page shows one
    sku: str | None = None
    gtin: str | None = None
    mpn: str | None = None
    # identifiers of the shop's own data, where they differ from the SKU
    product_id: str | None = None
    variant_id: str | None = None
    images: tuple[ProductImage, ...] = ()
    variants: tuple[Variant, ...] = ()
    # that the page states for its price: 0.5 kg, 0.75 l, 6 piece
    quantity: str | None = None
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    # 0 to 1: how much the page looks like the page of one product
    confidence: float = 0.0


class FieldName(StrEnum):
    """The fields of a product that facts are about; each is an attribute of `Product`."""

    NAME = "name"
    DESCRIPTION = "description"
    PRICE = "price"
    LIST_PRICE = "list_price"
    CURRENCY = "currency"
    AVAILABILITY = "availability"
    RATING = "rating"
    REVIEW_COUNT = "review_count"
    BRAND = "brand"
    CATEGORY = "category"
    SKU = "sku"
    GTIN = "gtin"
    MPN = "mpn"
    PRODUCT_ID = "product_id"
    VARIANT_ID = "variant_id"
    IMAGES = "images"
    VARIANTS = "variants"


@dataclass(frozen=True, slots=True)
class Fact:
    """`value` has the type of the product's attribute already; `origin` names the place.

    The origin's first word is the kind of place: json-ld, microdata, rdfa, opengraph, meta,
    script, dom, label, url, learned, parser. What follows a colon says where in it.
    """

    field: FieldName
    value: Any
    confidence: float
    origin: str


def to_plain(product: Product) -> dict[str, Any]:
    """The known fields; amounts are text, so that no digit is lost."""
    plain: dict[str, Any] = {}
    for part in fields(product):
        value = getattr(product, part.name)
        if value is not None and value != () and value != {}:
            plain[part.name] = _plain(value)
    return plain


def from_plain(plain: Mapping[str, Any]) -> Product:
    """The inverse of `to_plain`."""
    return _adapter().validate_python(plain)


@cache
def _adapter() -> TypeAdapter[Product]:
    from pydantic import TypeAdapter  # processes that only extract do not need it

    return TypeAdapter(Product)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, ProductImage | Variant | Evidence):
        named = {part.name: getattr(value, part.name) for part in fields(value)}
        return {name: _plain(item) for name, item in named.items() if item is not None}
    return str(value) if isinstance(value, Availability | ImageRole) else value
