"""The content of a product as its row stores it, and the hash that detects changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from hashlib import sha256
from typing import Any

import orjson

from forager.extract.product.product import Product, Variant, to_plain
from forager.extract.text import clip, collapse, readable
from forager.products.validation.fields import MAX_AMOUNT
from forager.products.validation.plausibility import Offer, PlainVariant

NAME_LENGTH = 512
BRAND_LENGTH = 255
CATEGORY_LENGTH = 255
SKU_LENGTH = 100
DESCRIPTION_LENGTH = 50_000
MAX_VARIANTS = 500
CATEGORY_SEPARATOR = " > "

# numeric(14,4) and numeric(3,2)
_CENTS = Decimal("0.0001")
_STARS = Decimal("0.01")
_ROUNDING = Context(prec=40, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True)
class ProductContent:
    """The columns that count as a product's content: when one changes, the product has changed.

    Ratings and numbers of reviews count, though they change often. Images do not: their
    addresses change with every release of a shop's image server, while the pictures stay.
    """

    product_name: str
    description: str | None
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
    # as JSON
    variants: str

    @property
    def offer(self) -> Offer:
        return Offer(self.price, self.list_price, self.currency, self.availability)


def offer_of(product: Product) -> Offer:
    """The offer of a checked product, rounded as it is stored."""
    return Offer(
        _rounded(product.price, _CENTS),
        _rounded(product.list_price, _CENTS),
        product.currency,
        None if product.availability is None else str(product.availability),
    )


def content_of(product: Product, offer: Offer, variants: Sequence[PlainVariant]) -> ProductContent:
    """The row of a checked product with a name, with the decided offers."""
    return ProductContent(
        product_name=line(product.name, NAME_LENGTH) or "",
        description=text(product.description, DESCRIPTION_LENGTH),
        price=offer.price,
        list_price=offer.list_price,
        currency=offer.currency,
        availability=offer.availability,
        rating=_rounded(product.rating, _STARS),
        review_count=product.review_count,
        brand=line(product.brand, BRAND_LENGTH),
        category=_category(product.category),
        sku=line(product.sku, SKU_LENGTH),
        gtin=product.gtin,
        variants=_json(variants),
    )


def content_hash(content: ProductContent) -> bytes:
    """SHA-256 of normalized JSON: 9.9 and 9.90 are the same price."""
    columns = {column.name: _spelled(getattr(content, column.name)) for column in fields(content)}
    return sha256(orjson.dumps(columns, option=orjson.OPT_SORT_KEYS)).digest()


def variants_of(product: Product) -> list[PlainVariant]:
    """Cleaned variants, without invalid amounts."""
    return [_variant(variant) for variant in product.variants[:MAX_VARIANTS]]


def line(value: object, limit: int) -> str | None:
    """A text as one line of at most `limit` characters; None if it is empty."""
    if not isinstance(value, str):
        return None
    return clip(collapse(readable(value[: limit * 8])), limit)[0].strip() or None


def text(value: object, limit: int) -> str | None:
    """A text with line breaks, of at most `limit` characters; None if it is empty."""
    if not isinstance(value, str):
        return None
    return clip(readable(value[: limit * 2]).strip(), limit)[0].strip() or None


def _category(path: Iterable[object]) -> str | None:
    """The path as far as it fits: half a step would be another category."""
    category = ""
    for step in path:
        name = line(step, CATEGORY_LENGTH)
        longer = CATEGORY_SEPARATOR.join(filter(None, (category, name)))
        if len(longer) > CATEGORY_LENGTH:
            break
        category = longer
    return category or None


def _variant(variant: Variant) -> dict[str, Any]:
    price = _amount(variant.price)
    cleaned = Variant(
        sku=line(variant.sku, SKU_LENGTH),
        name=line(variant.name, NAME_LENGTH),
        price=price,
        currency=line(variant.currency, 3) if price is not None else None,
        availability=variant.availability,
        gtin=line(variant.gtin, 14),
        url=line(variant.url, 2_000),
    )
    [plain] = to_plain(Product(variants=(cleaned,)))["variants"]
    return dict(plain)


def _amount(value: object) -> Decimal | None:
    if not isinstance(value, Decimal) or not value.is_finite() or not 0 < value <= MAX_AMOUNT:
        return None
    return _rounded(value, _CENTS)


def _rounded(value: Decimal | None, step: Decimal) -> Decimal | None:
    if value is None:
        return None
    try:
        return value.quantize(step, context=_ROUNDING)
    except InvalidOperation:  # too many digits
        return None


def _spelled(value: object) -> object:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


# PostgreSQL's parser never produces a word that begins with it
_MARK = "§"


def marks_of(config: str, sku: str | None, gtin: str | None) -> Iterator[str]:
    """Lexemes for the configuration and the codes of a product."""
    yield config_mark(config)
    if sku is not None:
        yield sku_mark(sku)
    if gtin is not None:
        yield gtin_mark(gtin)


def config_mark(config: str) -> str:
    return f"{_MARK}{config}"


def sku_mark(sku: str) -> str:
    """A SKU, case-insensitive."""
    return f"{_MARK}sku:{sku.lower()}"


def gtin_mark(gtin: str) -> str:
    """A UPC, or the EAN and GTIN-14 that equal it with leading zeros."""
    return f"{_MARK}gtin:{gtin.lstrip('0')}"
