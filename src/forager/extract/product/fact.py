"""A fact: one value that one place of a page claims for one field of its product."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
    IMAGES = "images"
    VARIANTS = "variants"


@dataclass(frozen=True, slots=True)
class Fact:
    """`value` has the type of the product's attribute already; `origin` names the place.

    The origin's first word is the kind of place: json-ld, microdata, rdfa, opengraph, meta,
    script, dom, parser. What follows a colon says where in it.
    """

    field: FieldName
    value: Any
    confidence: float
    origin: str
