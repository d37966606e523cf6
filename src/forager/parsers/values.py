"""Values that a parser may return for a field, converted to those of a product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from forager.extract.product.availability import term_of
from forager.extract.product.currency import currency_of
from forager.extract.product.images import gallery
from forager.extract.product.page import ProductPage
from forager.extract.product.price import MAX_PRICE, money_in
from forager.extract.product.product import Availability, FieldName, ProductImage, Variant
from forager.extract.product.wording import (
    brand_of,
    category_of,
    count_of,
    description_of,
    gtin_of,
    name_of,
    rating_of,
    sku_of,
)


class NotUsable(ValueError):
    """A parser returned something that is no value of its field."""


def usable(field: FieldName, value: Any, page: ProductPage) -> Any:
    """The value as `Product` stores it: cleaned and parsed."""
    kept = _READERS[field](value, page)
    if kept is None or kept == ():
        raise NotUsable(f"{str(value)[:80]!r} is no {field.replace('_', ' ')}")
    return kept


def _amount(value: Any, page: ProductPage) -> Decimal | None:
    if isinstance(value, str):
        money = next(money_in(value[:200], page.currency_hints), None)
        return money.amount if money else None
    if isinstance(value, bool) or not isinstance(value, Decimal | int | float):
        return None
    amount = value if isinstance(value, Decimal) else Decimal(str(value))
    return amount if amount.is_finite() and 0 <= amount < MAX_PRICE else None


def _currency(value: Any, page: ProductPage) -> str | None:
    return currency_of(value, page.currency_hints) if isinstance(value, str) else None


def _availability(value: Any, _: ProductPage) -> Availability | None:
    return value if isinstance(value, Availability) else term_of(value)


def _rating(value: Any, _: ProductPage) -> Decimal | None:
    return rating_of(str(value) if isinstance(value, Decimal) else value)


def _images(value: Any, page: ProductPage) -> tuple[ProductImage, ...]:
    found = [value] if isinstance(value, str | ProductImage) else list(value)
    pairs = ((i.url, i.alt) if isinstance(i, ProductImage) else (str(i), None) for i in found)
    absolute = ((page.absolute(url), alt) for url, alt in pairs)
    return gallery((url, alt) for url, alt in absolute if url)


def _variants(value: Any, _: ProductPage) -> tuple[Variant, ...]:
    found = list(value) if isinstance(value, Iterable) else []
    if not all(isinstance(variant, Variant) for variant in found):
        return ()
    return tuple(found)


def _ignoring_page(read: Callable[[Any], Any]) -> Callable[[Any, ProductPage], Any]:
    return lambda value, _: read(value)


_READERS: Mapping[FieldName, Callable[[Any, ProductPage], Any]] = {
    FieldName.NAME: _ignoring_page(name_of),
    FieldName.DESCRIPTION: _ignoring_page(description_of),
    FieldName.PRICE: _amount,
    FieldName.LIST_PRICE: _amount,
    FieldName.CURRENCY: _currency,
    FieldName.AVAILABILITY: _availability,
    FieldName.RATING: _rating,
    FieldName.REVIEW_COUNT: _ignoring_page(count_of),
    FieldName.BRAND: _ignoring_page(brand_of),
    FieldName.CATEGORY: _ignoring_page(category_of),
    FieldName.SKU: _ignoring_page(sku_of),
    FieldName.GTIN: _ignoring_page(gtin_of),
    FieldName.MPN: _ignoring_page(sku_of),
    FieldName.PRODUCT_ID: _ignoring_page(sku_of),
    FieldName.VARIANT_ID: _ignoring_page(sku_of),
    FieldName.IMAGES: _images,
    FieldName.VARIANTS: _variants,
}
