"""Products as plain data, for processes and tables, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from forager.extract.product.record import (
    Availability,
    Evidence,
    ImageRole,
    Product,
    ProductImage,
    Variant,
)


def to_plain(product: Product) -> dict[str, Any]:
    """Only what is known; amounts are text, so that no digit is lost."""
    plain: dict[str, Any] = {}
    for field in fields(product):
        value = getattr(product, field.name)
        if value is not None and value != () and value != {}:
            plain[field.name] = _plain(value)
    return plain


def from_plain(plain: Mapping[str, Any]) -> Product:
    """The inverse of `to_plain`."""
    given: dict[str, Any] = dict(plain)
    for name in ("price", "list_price", "rating"):
        if name in given:
            given[name] = Decimal(given[name])
    if "availability" in given:
        given["availability"] = Availability(given["availability"])
    given["category"] = tuple(given.get("category", ()))
    given["images"] = tuple(_image(image) for image in given.get("images", ()))
    given["variants"] = tuple(_variant(variant) for variant in given.get("variants", ()))
    given["evidence"] = {
        name: Evidence(said["confidence"], said["origin"])
        for name, said in given.get("evidence", {}).items()
    }
    return Product(**given)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, ProductImage | Variant | Evidence):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _plain(item) for name, item in named.items() if item is not None}
    return str(value) if isinstance(value, Availability | ImageRole) else value


def _image(plain: Mapping[str, Any]) -> ProductImage:
    return ProductImage(plain["url"], plain.get("alt"), ImageRole(plain["role"]))


def _variant(plain: Mapping[str, Any]) -> Variant:
    given = dict(plain)
    if "price" in given:
        given["price"] = Decimal(given["price"])
    if "availability" in given:
        given["availability"] = Availability(given["availability"])
    return Variant(**given)
