"""What a page says about its product, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forager.cli.output import note, show_table
from forager.cli.words import counted, on_one_line
from forager.extract.product.likeness import is_product
from forager.extract.product.price import plain

if TYPE_CHECKING:
    from decimal import Decimal

    from forager.extract.product.record import Product, Variant
    from forager.parsers.registry import ParsedProduct

_SEPARATOR = " > "


def product_object(parsed: ParsedProduct, url: str) -> dict[str, Any]:
    """One flat object; what is not known is null."""
    product = parsed.product
    return {
        "url": url,
        "is_product": is_product(product),
        "page_confidence": round(product.confidence, 2),
        "name": product.name,
        "description": product.description,
        "price": _money(product.price),
        "list_price": _money(product.list_price),
        "currency": product.currency,
        "availability": product.availability,
        "rating": None if product.rating is None else float(product.rating),
        "review_count": product.review_count,
        "brand": product.brand,
        "category": _SEPARATOR.join(product.category) or None,
        "category_path": product.category,
        "sku": product.sku,
        "gtin": product.gtin,
        "images": [image.url for image in product.images],
        "image_details": product.images,
        "variants": [_variant(variant) for variant in product.variants],
        "confidence": {name: round(e.confidence, 2) for name, e in product.evidence.items()},
        "origins": {name: evidence.origin for name, evidence in product.evidence.items()},
        "parser": parsed.parser,
        "parser_version": parsed.version,
    }


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else plain(amount)


def _variant(variant: Variant) -> dict[str, Any]:
    return {
        "sku": variant.sku,
        "name": variant.name,
        "price": _money(variant.price),
        "currency": variant.currency,
        "availability": variant.availability,
        "gtin": variant.gtin,
        "url": variant.url,
    }


def show_product(parsed: ParsedProduct) -> None:
    product = parsed.product
    if not is_product(product):
        note(f"this hardly looks like the page of one product ({product.confidence:.0%})")
    rows = [
        (name, text, *_evidence(product, name.replace(" ", "_")))
        for name, text in _words(product).items()
        if text
    ]
    show_table({"": {"style": "bold"}, "VALUE": {"cut": True}, "SURE": {}, "FROM": {}}, rows)
    note(f"read by {parsed.parser} {parsed.version}")


def _evidence(product: Product, name: str) -> tuple[str, str]:
    said = product.evidence.get(name)
    return (f"{said.confidence:.0%}", said.origin) if said else ("", "")


def _words(product: Product) -> dict[str, str]:
    return {
        "name": product.name or "",
        "price": _money(product.price) or "",
        "list price": _money(product.list_price) or "",
        "currency": product.currency or "",
        "availability": product.availability or "",
        "rating": "" if product.rating is None else f"{product.rating.normalize():f} of 5",
        "review count": "" if product.review_count is None else str(product.review_count),
        "brand": product.brand or "",
        "category": _SEPARATOR.join(product.category),
        "sku": product.sku or "",
        "gtin": product.gtin or "",
        "images": "\n".join(image.url for image in product.images[:3]),
        "variants": counted(len(product.variants), "variant") if product.variants else "",
        "description": on_one_line((product.description or "")[:300]),
    }
