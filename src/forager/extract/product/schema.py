"""Facts about a product in an item of schema.org."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from forager.extract.product.availability import term_of
from forager.extract.product.currency import currency_of
from forager.extract.product.images import images_of
from forager.extract.product.page import ProductPage
from forager.extract.product.price import machine_amount
from forager.extract.product.product import Availability, Fact, FieldName, Variant
from forager.extract.product.wording import (
    BRAND_LABELS,
    brand_of,
    category_of,
    count_of,
    description_of,
    gtin_of,
    line_of,
    name_of,
    rating_of,
    sku_of,
)

Item = dict[str, Any]
_MAX_OFFERS = 500
# a type that is remembered
_MAX_TYPE = 200
MAX_VARIANTS = 500

PRODUCT_TYPES = frozenset(
    ["product", "productmodel", "individualproduct", "someproducts", "productgroup", "vehicle",
     "car", "motorcycle", "productcollection"]
)  # fmt: skip
# things that are sold as well as described
SOLD_TYPES = frozenset(["book", "event", "movie", "softwareapplication", "mobileapplication",
                        "course", "musicalbum", "videogame", "creativework", "theaterevent",
                        "musicevent", "hotelroom", "apartment", "service", "trip"])  # fmt: skip


def types_of(item: Item) -> frozenset[str]:
    """The types without their vocabulary, in lower case."""
    written = item.get("@type") or item.get("type")
    if isinstance(written, str) and len(written) < _MAX_TYPE:
        return _single_type(written)
    return frozenset(map(_type_name, listed(written)[:10]))


def _type_name(written: Any) -> str:
    return str(written).rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1].lower()


@lru_cache(maxsize=1_024)
def _single_type(written: str) -> frozenset[str]:
    return frozenset([_type_name(written)])


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> Any:
    """The text of a value that may be a text, a named thing or a list of either."""
    for _ in range(4):
        if isinstance(value, list):
            value = value[0] if value else None
        elif isinstance(value, dict):
            value = value.get("name") or value.get("@value") or value.get("value")
        else:
            break
    return value if isinstance(value, str | int | float) else None


def first_of(item: Item, *names: str) -> Any:
    return next((item[name] for name in names if item.get(name) not in (None, "", [], {})), None)


@dataclass(frozen=True, slots=True)
class SchemaOffer:
    """One offer of an item."""

    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: Availability | None
    sku: str | None
    url: str | None
    name: str | None
    aggregate: bool = False
    high: Decimal | None = None


def offers_of(item: Item, hints: tuple[str, ...] = ()) -> list[SchemaOffer]:
    """All offers of an item, those of an aggregate after the aggregate itself."""
    found: list[SchemaOffer] = []
    waiting = listed(item.get("offers"))[:_MAX_OFFERS]
    for value in waiting:
        if isinstance(value, dict):
            found.append(_offer(value, hints))
            waiting.extend(listed(value.get("offers"))[: _MAX_OFFERS - len(waiting)])
    return found


def _offer(value: Item, hints: tuple[str, ...]) -> SchemaOffer:
    specified, listed_price = _specification(value.get("priceSpecification"))
    written = first_of(value, "priceCurrency", "pricecurrency", "currency") or first_of(
        specified, "priceCurrency"
    )
    currency = currency_of(str(text_of(written) or ""), hints)
    aggregate = "aggregateoffer" in types_of(value) or "lowPrice" in value
    price = machine_amount(text_of(first_of(value, "price", "lowPrice")), currency)
    if price is None:
        price = machine_amount(text_of(first_of(specified, "price", "minPrice")), currency)
    return SchemaOffer(
        price=price,
        list_price=machine_amount(text_of(listed_price), currency),
        currency=currency,
        availability=term_of(text_of(value.get("availability"))),
        sku=sku_of(text_of(value.get("sku"))),
        url=line_of(text_of(value.get("url")), 2000),
        name=name_of(text_of(value.get("name"))),
        aggregate=aggregate,
        high=machine_amount(text_of(value.get("highPrice")), currency),
    )


_LIST_PRICE = re.compile(r"list|srp|strike|regular|msrp|rrp", re.IGNORECASE)


def _specification(value: Any) -> tuple[Item, Any]:
    """The specification of the price that is paid, and the price that was."""
    paid: Item = {}
    before = None
    for each in listed(value)[:20]:
        if not isinstance(each, dict):
            continue
        if _LIST_PRICE.search(str(each.get("priceType") or "")):
            before = each.get("price")
        elif not paid and not isinstance(each.get("referenceQuantity"), dict):
            paid = each
    return paid, before


# --- facts ------------------------------------------------------------------------------------


def facts_of(item: Item, origin: str, trust: float, page: ProductPage) -> Iterator[Fact]:
    """The facts of the item that describes the page's product."""
    yield from _text_facts(item, origin, trust)
    yield from _code_facts(item, origin, trust)
    yield from _offer_facts(item, origin, trust, page)
    yield from _rating_facts(item, origin, trust)
    images = images_of(item.get("image"), page)
    if images:
        yield Fact(FieldName.IMAGES, images, trust, origin)
    variants = variants_of(item, page)
    if len(variants) > 1:
        yield Fact(FieldName.VARIANTS, variants, trust, origin)


def _text_facts(item: Item, origin: str, trust: float) -> Iterator[Fact]:
    if name := name_of(text_of(first_of(item, "name", "title", "headline"))):
        yield Fact(FieldName.NAME, name, trust, origin)
    if description := description_of(text_of(item.get("description"))):
        yield Fact(FieldName.DESCRIPTION, description, trust, origin)
    if brand := brand_of(text_of(item.get("brand"))):
        yield Fact(FieldName.BRAND, brand, trust, origin)
    elif maker := brand_of(text_of(item.get("manufacturer"))):
        yield Fact(FieldName.BRAND, maker, trust * 0.8, origin)
    elif stated := next((b for p in _properties(item) if (b := brand_of(p))), None):
        yield Fact(FieldName.BRAND, stated, trust * 0.8, f"{origin}.additionalProperty")
    if category := category_of(_category(item.get("category"))):
        yield Fact(FieldName.CATEGORY, category, trust * 0.9, origin)


def _properties(item: Item) -> Iterator[Any]:
    """The values of further properties that are labeled as a brand."""
    for each in listed(item.get("additionalProperty"))[:100]:
        if isinstance(each, dict) and str(each.get("name")).strip().lower() in BRAND_LABELS:
            yield text_of(each.get("value"))


def _category(value: Any) -> Any:
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return [text_of(each) for each in value] if isinstance(value, list) else text_of(value)


_GTINS = ("gtin13", "gtin", "gtin12", "gtin14", "gtin8", "ean", "isbn", "upc", "productID")


def _code_facts(item: Item, origin: str, trust: float) -> Iterator[Fact]:
    if sku := sku_of(text_of(item.get("sku"))):
        yield Fact(FieldName.SKU, sku, trust, origin)
    for name, share in (("productID", 0.75), ("productId", 0.75), ("identifier", 0.6)):
        written = str(text_of(item.get(name)) or "")
        if (code := sku_of(written.rpartition(":")[2])) and gtin_of(code) is None:
            yield Fact(FieldName.SKU, code, trust * share, origin)
            yield Fact(FieldName.PRODUCT_ID, code, trust * share, origin)
    if mpn := sku_of(text_of(item.get("mpn"))):
        yield Fact(FieldName.MPN, mpn, trust, origin)
    for name in _GTINS:
        for value in listed(item.get(name))[:3]:
            if gtin := gtin_of(str(text_of(value) or "").rpartition(":")[2]):
                yield Fact(FieldName.GTIN, gtin, trust, f"{origin}.{name}")
                return


def _offer_facts(item: Item, origin: str, trust: float, page: ProductPage) -> Iterator[Fact]:
    offers = offers_of(item, page.currency_hints) or [
        offer
        for each in listed(item.get("hasVariant"))[:_MAX_OFFERS]
        if isinstance(each, dict)
        for offer in offers_of(each, page.currency_hints)
    ]
    if not offers:
        return
    yield from _price_facts(offers, f"{origin}.offers", trust)
    for offer in offers:
        if offer.currency:
            yield Fact(FieldName.CURRENCY, offer.currency, trust, f"{origin}.offers")
            break
    if availability := _best_availability(offers):
        yield Fact(FieldName.AVAILABILITY, availability, trust * 0.95, f"{origin}.offers")
    if sku := next((offer.sku for offer in offers if offer.sku), None):
        share = 0.85 if len(offers) == 1 else 0.5
        yield Fact(FieldName.SKU, sku, trust * share, f"{origin}.offers")
        if len(offers) == 1:
            yield Fact(FieldName.VARIANT_ID, sku, trust * share, f"{origin}.offers")


def _price_facts(offers: list[SchemaOffer], origin: str, trust: float) -> Iterator[Fact]:
    priced = [offer for offer in offers if offer.price]
    if not priced:
        return
    single = [offer for offer in priced if not offer.aggregate] or priced
    prices = {offer.price for offer in single}
    buyable = [o for o in single if o.availability is not Availability.OUT_OF_STOCK] or single
    best = min(buyable, key=lambda offer: offer.price or Decimal(0))
    spread = len(prices) > 1 or (best.aggregate and best.high not in (None, best.price))
    # a range has no one price: its lowest is what shops write after "from"
    yield Fact(FieldName.PRICE, best.price, trust * (0.75 if spread else 1.0), origin)
    if best.list_price and best.price and best.list_price > best.price:
        yield Fact(FieldName.LIST_PRICE, best.list_price, trust, origin)


def _best_availability(offers: list[SchemaOffer]) -> Availability | None:
    """A product can be bought where one of its offers can."""
    known = [offer.availability for offer in offers if offer.availability]
    if not known:
        return None
    order = list(Availability)
    return min(known, key=order.index)


def _rating_facts(item: Item, origin: str, trust: float) -> Iterator[Fact]:
    value = item.get("aggregateRating")
    value = value[0] if isinstance(value, list) and value else value
    if not isinstance(value, dict):
        return
    origin = f"{origin}.aggregateRating"
    best, worst = text_of(value.get("bestRating")), text_of(value.get("worstRating"))
    if (rating := rating_of(text_of(value.get("ratingValue")), best, worst)) is not None:
        yield Fact(FieldName.RATING, rating, trust, origin)
    count = count_of(text_of(first_of(value, "reviewCount", "ratingCount")))
    if count is not None:
        yield Fact(FieldName.REVIEW_COUNT, count, trust, origin)


def variants_of(item: Item, page: ProductPage) -> tuple[Variant, ...]:
    """The variants of a product group, a model or a list of offers."""
    named = listed(item.get("hasVariant")) or listed(item.get("model"))
    found = [_variant(each, page) for each in named[:MAX_VARIANTS] if isinstance(each, dict)]
    if not found:
        found = [_offer_variant(o, page) for o in offers_of(item, page.currency_hints) if o.sku]
    return tuple(dict.fromkeys(each for each in found if each != Variant()))


def _variant(item: Item, page: ProductPage) -> Variant:
    offers = offers_of(item, page.currency_hints)
    offer = offers[0] if offers else None
    url = line_of(text_of(item.get("url")), 2000) or (offer.url if offer else None)
    return Variant(
        sku=sku_of(text_of(item.get("sku"))) or (offer.sku if offer else None),
        name=name_of(text_of(item.get("name"))),
        price=offer.price if offer else None,
        currency=offer.currency if offer else None,
        availability=offer.availability if offer else None,
        gtin=next((g for n in _GTINS if (g := gtin_of(text_of(item.get(n))))), None),
        url=page.absolute(url) if url else None,
    )


def _offer_variant(offer: SchemaOffer, page: ProductPage) -> Variant:
    url = page.absolute(offer.url) if offer.url else None
    return Variant(
        sku=offer.sku, name=offer.name, price=offer.price, currency=offer.currency,
        availability=offer.availability, url=url,
    )  # fmt: skip
