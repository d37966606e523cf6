"""A small catalog, and how to read all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from forager.extract.product.product import Availability, Product
from forager.products.product import ListedProduct


def product(name: str, price: str | None = "10", **more: Any) -> Product:
    return Product(
        name=name,
        price=None if price is None else Decimal(price),
        currency=None if price is None else "EUR",
        availability=Availability.IN_STOCK,
        confidence=0.9,
        **more,
    )


CATALOG = {
    "chair": product("Chair", "120", brand="Oak", category=("Home", "Seating"), sku="C-1"),
    "stool": product("Bar stool", "60", brand="oak", category=("Home", "Seating", "Bar")),
    "sofa": product("Sofa", "900", brand="Pine", rating=Decimal("4.8"), gtin="4006381333931"),
    "lamp": product("Lamp", None, rating=Decimal("3")),
    "rug": replace(product("Rug", "60"), availability=Availability.OUT_OF_STOCK),
}


def names(products: Sequence[ListedProduct]) -> list[str]:
    return [found.name for found in products]
