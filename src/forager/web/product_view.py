"""One product as its page shows it: fields with their evidence, prices, images, visits."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from forager.extract.product.record import FieldName
from forager.products.price_history import PriceEntry, price_history
from forager.products.service import ProductDetails, show_product
from forager.products.store.records import ProductRecord
from forager.web.formats import money, number, words
from forager.web.price_chart import price_chart
from forager.web.visit import Visit

CHANGES_DRAWN = 300
CHANGES_SHOWN = 10
VARIANTS_SHOWN = 50
IMAGES_SHOWN = 12

# these have a place of their own on the page
_ELSEWHERE = (FieldName.NAME, FieldName.IMAGES, FieldName.VARIANTS)


@dataclass(frozen=True, slots=True)
class Shown:
    """A field: its value in words, how sure it is (0 to 1), and the place that said so."""

    name: str
    value: str | None
    confidence: float | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class ProductView:
    details: ProductDetails
    fields: list[Shown]
    changes: list[PriceEntry]
    # whether there are more changes than are drawn
    is_cut: bool
    chart: Markup

    @property
    def product(self) -> ProductRecord:
        return self.details.product

    @property
    def name_evidence(self) -> Shown:
        return _shown(self.product, FieldName.NAME)


async def load_product(visit: Visit, product_id: int) -> ProductView:
    details = await show_product(visit.here.database, str(product_id))
    found = await price_history(visit.here.database, str(product_id), limit=CHANGES_DRAWN)
    return ProductView(
        details=details,
        fields=[_shown(details.product, name) for name in FieldName if name not in _ELSEWHERE],
        changes=found.items,
        is_cut=found.next_cursor is not None,
        chart=price_chart(found.items, details.product.last_seen_at),
    )


def _shown(product: ProductRecord, name: FieldName) -> Shown:
    said = product.evidence.get(name.value, {})
    return Shown(name.value, _value(product, name), said.get("confidence"), said.get("origin"))


def _value(product: ProductRecord, name: FieldName) -> str | None:
    value = getattr(product, name.value, None) or product.metadata.get(name.value)
    if value is None:
        return None
    match name:
        case FieldName.PRICE | FieldName.LIST_PRICE:
            return money(value, product.currency)
        case FieldName.AVAILABILITY:
            return words(value)
        case FieldName.RATING | FieldName.REVIEW_COUNT:
            return number(value)
        case _:
            return str(value)
