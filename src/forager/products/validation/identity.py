"""Whether two readings are about the same product."""

from __future__ import annotations

from dataclasses import dataclass

from forager.extract.product.product import Product
from forager.extract.product.wording import alike, code_key
from forager.products.content import NAME_LENGTH, SKU_LENGTH, line

# names with more than this share of their words in common are spellings of one name
_SPELLING = 0.5
# a code from the URL is the same on every page that the URL leads to, also on a category page
_URL = "url"


@dataclass(frozen=True, slots=True)
class Identity:
    """The name and the codes of a product. A SKU that only its URL has is left out."""

    name: str
    sku: str | None = None
    gtin: str | None = None


def identity_of(product: Product | None) -> Identity | None:
    """The identity of a reading, as it would be stored; None without a name."""
    name = None if product is None else line(product.name, NAME_LENGTH)
    if product is None or not name:
        return None
    said = product.evidence.get("sku")
    sku = None if said is not None and is_from_url(said.origin) else line(product.sku, SKU_LENGTH)
    return Identity(name, sku, product.gtin)


def is_from_url(origin: str | None) -> bool:
    return (origin or "").partition(":")[0] == _URL


def is_same_product(known: Identity, seen: Identity) -> bool:
    """Whether a page still shows the known product.

    Equal codes are enough, and so is an equal name: shops correct codes, and leave them out. Names
    may be spelled in other words as long as no code differs and none is missing.
    """
    if _equal(known.gtin, seen.gtin) or _equal(known.sku, seen.sku):
        return True
    if code_key(known.name) == code_key(seen.name):
        return True
    has_codes = known.sku is not None or known.gtin is not None
    return not has_codes and alike(known.name, seen.name) > _SPELLING


def may_be_merged(known: Identity, seen: Identity) -> bool:
    """Whether two stored products are one: equal GTINs, or equal SKUs and names."""
    if known.gtin is not None and seen.gtin is not None:
        return _equal(known.gtin, seen.gtin)
    return _equal(known.sku, seen.sku) and code_key(known.name) == code_key(seen.name)


def _equal(known: str | None, seen: str | None) -> bool:
    if known is None or seen is None:
        return False
    return code_key(known).lstrip("0") == code_key(seen).lstrip("0")
