"""The object in a page's scripts that describes its product."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, TypeGuard

from forager.extract.product.availability import term_of
from forager.extract.product.currency import currency_of
from forager.extract.product.page import ProductPage
from forager.extract.product.price import machine_amount
from forager.extract.product.product import Availability, Fact, FieldName, Variant
from forager.extract.product.script.blobs import blobs_of
from forager.extract.product.wording import alike, brand_of, gtin_of, name_of, sku_of

_MAX_VISITED = 12_000
_MAX_CHILDREN = 400
_MAX_KEY = 200
_MAX_VARIANTS = 200
_ACCEPTED = 2.5

_NAMES = ("name", "title", "productname", "producttitle", "displayname", "itemname", "goodsname",
          "dealname", "productdisplayname", "shortname", "description1")  # fmt: skip
_PRICES = ("saleprice", "specialprice", "currentprice", "finalprice", "sellingprice", "offerprice",
           "discountprice", "discountedprice", "nowprice", "promoprice", "activeprice",
           "productprice", "price", "priceamount", "pricevalue", "itemprice", "unitprice",
           "prices", "pricing", "priceinfo", "buynowprice", "minprice", "lowprice")  # fmt: skip
_LIST_PRICES = ("listprice", "regularprice", "originalprice", "wasprice", "oldprice", "msrp", "rrp",
                "compareatprice", "strikeprice", "retailprice", "fullprice", "pricebefore",
                "basepriceoriginal", "normalprice")  # fmt: skip
_CURRENCIES = ("currency", "currencycode", "pricecurrency", "currencyiso", "productcurrency")
_STOCKS = ("availability", "instock", "isinstock", "isavailable", "stockstatus", "available",
           "availabilitystatus", "availabilitystatusdisplay", "purchasable",
           "isbuyable")  # fmt: skip
_SOLD_OUT = ("soldout", "issoldout", "outofstock", "isoutofstock", "isoos")
_SKUS = (("sku", 1.0), ("productsku", 0.95), ("skuid", 0.85), ("skucode", 0.9), ("asin", 0.95),
         ("itemnumber", 0.85), ("articlenumber", 0.85), ("productcode", 0.85), ("productid", 0.8),
         ("itemid", 0.78), ("prodid", 0.75), ("partnumber", 0.75), ("code", 0.65),
         ("id", 0.72))  # fmt: skip
_IDENTIFIERS = (
    (FieldName.PRODUCT_ID, ("productid", "itemid", "id")),
    (FieldName.VARIANT_ID, ("variantid", "skuid")),
    (FieldName.MPN, ("mpn", "manufacturerpartnumber", "modelnumber")),
)
_BRANDS = ("brand", "brandname", "productbrand", "itembrand", "manufacturer", "manufacturername",
           "vendor")  # fmt: skip
_BRAND_MENTIONS = ("rand", "RAND", "endor", "anufacturer")
_GTINS = ("gtin", "gtin13", "gtin14", "gtin12", "ean", "ean13", "upc", "barcode", "isbn", "isbn13")
_PARTS = ("value", "amount", "current", "now", "sale", "final", "price", "centamount", "raw",
          "sales", "min", "default", "selling", "gross", "discounted", "list",
          "regular")  # fmt: skip
_INTERESTING = frozenset((*_PRICES, *_CURRENCIES, *(name for name, _ in _SKUS), "variants"))
_NESTED = frozenset([dict, list])
# keys of Shopify, whose themes count in cents
_IN_CENTS = frozenset(["compareatprice", "publictitle"])
_NOT_KEY = re.compile(r"[\W_]+")

Lowered = Mapping[str, Any]


def state_facts(
    page: ProductPage, known: Iterable[Fact], *, brand_only: bool = False
) -> Iterator[Fact]:
    """The facts of the object that is most surely the page's product.

    If only its brand is asked for, scripts and objects that name none are skipped.
    """
    skus = frozenset(str(fact.value) for fact in known if fact.field is FieldName.SKU)
    best: Lowered | None = None
    best_score = 0.0
    for blob in blobs_of(page, _marks(page, skus), _BRAND_MENTIONS if brand_only else ("",)):
        for keys in _objects(blob):
            if brand_only and keys.keys().isdisjoint(_BRANDS):
                continue
            score = _score(keys, page, skus)
            if score >= _ACCEPTED and score > best_score:
                best, best_score = keys, score
    if best is not None:
        yield from _facts(best, best_score, page)


_PLAIN_WORD = re.compile(r"[A-Za-z0-9]{4,}")


def _marks(page: ProductPage, skus: frozenset[str]) -> set[str]:
    """Texts of which a script with the product must have one: a code, or words of its name."""
    words = (w for title in page.titles[:2] for w in _PLAIN_WORD.findall(title))
    longest = sorted(set(words), key=len, reverse=True)[:2]
    # names in other scripts than the Latin may be escaped, so they cannot be looked for
    return {*longest, *(sku for sku in skus if len(sku) > 3)} or {""}


def _lowered(item: Mapping[Any, Any], limit: int) -> dict[str, Any]:
    plain, _ = _plain_keys(tuple(islice(item, limit)))
    return dict(zip(plain, item.values(), strict=False))


def _plain_keys(written: tuple[Any, ...]) -> tuple[tuple[str, ...], bool]:
    """The names of an object, and whether one of them may be that of a product."""
    return _known_keys(written) if len(written) <= _FEW_KEYS else _each_plain(written)


def _each_plain(written: tuple[Any, ...]) -> tuple[tuple[str, ...], bool]:
    plain = tuple(_plain_key(str(key)[:_MAX_KEY]) for key in written)
    return plain, not _INTERESTING.isdisjoint(plain)


# the objects of a list have the same keys
_FEW_KEYS = 60
_known_keys = lru_cache(maxsize=512)(_each_plain)


# the same few names stand in thousands of objects
@lru_cache(maxsize=4_096)
def _plain_key(written: str) -> str:
    """`sale_price` and `salePrice` are one name."""
    return _NOT_KEY.sub("", written).lower()


def _objects(blob: Any) -> Iterator[Lowered]:
    waiting = [blob]
    children: Iterable[Any]
    for visited, value in enumerate(waiting):
        if visited > _MAX_VISITED:
            return
        if isinstance(value, dict):
            children = value.values()
            plain, is_interesting = _plain_keys(tuple(islice(value, _MAX_CHILDREN)))
            if is_interesting:
                yield dict(zip(plain, children, strict=False))
        elif isinstance(value, list):
            children = value
        else:
            continue
        nested = [child for child in islice(children, _MAX_CHILDREN) if type(child) in _NESTED]
        waiting.extend(nested)


def _score(keys: Lowered, page: ProductPage, skus: frozenset[str]) -> float:
    """Names and codes that the page knows as its own say which object is meant."""
    variants = keys.get("variants")
    variant = _variant(variants[0]) if _holds_objects(variants) else Variant()
    name = _name(keys) or variant.name
    score = 0.0
    if name and len(name) > 3:
        likeness = max((alike(name, title) for title in page.titles), default=0.0)
        score += 2.5 * likeness if likeness >= 0.75 else -2.0
    stated = (_first(keys.get(key)) for key, _ in _SKUS)
    codes = [str(code) for code in stated if isinstance(code, str | int)]
    if any(len(code) > 3 and (code in skus or code in page.url) for code in codes):
        score += 2.0
    score += 1.0 if variant.price or not keys.keys().isdisjoint(_PRICES) else 0.0
    score += 0.3 if codes else 0.0
    score += 0.0 if keys.keys().isdisjoint(_BRANDS) else 0.2
    return score


def _facts(keys: Lowered, score: float, page: ProductPage) -> Iterator[Fact]:
    trust = min(0.78, 0.5 + 0.05 * score)
    origin = "script:state"
    currency = _currency(keys, page)
    prices = _price_pair(keys, currency)
    if prices[0]:
        yield Fact(FieldName.PRICE, prices[0], trust, origin)
        if currency:
            yield Fact(FieldName.CURRENCY, currency, trust, origin)
    if prices[0] and prices[1] and prices[1] > prices[0]:
        yield Fact(FieldName.LIST_PRICE, prices[1], trust, origin)
    for key, share in _SKUS:
        if code := sku_of(_first(keys.get(key))):
            yield Fact(FieldName.SKU, code, trust * share, f"{origin}.{key}")
    for field, names in _IDENTIFIERS:
        if code := next((c for key in names if (c := sku_of(_first(keys.get(key))))), None):
            yield Fact(field, code, trust, origin)
    yield from _other_facts(keys, trust, origin)


def _other_facts(keys: Lowered, trust: float, origin: str) -> Iterator[Fact]:
    if name := _name(keys):
        yield Fact(FieldName.NAME, name, trust * 0.8, origin)
    brands = (b for key in _BRANDS if (b := brand_of(_named(keys.get(key)))))
    # a shop's abbreviation is no name
    if brand := next((b for b in brands if len(b) > 3 or not b.islower()), None):
        yield Fact(FieldName.BRAND, brand, trust * 0.95, origin)
    if gtin := next((g for key in _GTINS if (g := gtin_of(_first(keys.get(key))))), None):
        yield Fact(FieldName.GTIN, gtin, trust, origin)
    if availability := _availability(keys):
        yield Fact(FieldName.AVAILABILITY, availability, trust * 0.85, origin)
    variants = _variants(keys)
    if len(variants) > 1:
        yield Fact(FieldName.VARIANTS, variants, trust, origin)


def _name(keys: Lowered) -> str | None:
    return next((name for key in _NAMES if (name := name_of(_first(keys.get(key))))), None)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _named(value: Any) -> Any:
    value = _first(value)
    return value.get("name") or value.get("label") if isinstance(value, dict) else value


def _currency(keys: Lowered, page: ProductPage) -> str | None:
    """Beside the price, or in the objects that hold it."""
    waiting: list[tuple[Any, int]] = [(keys, 0)]
    for source, depth in waiting:
        for name, value in list(source.items())[:_MAX_CHILDREN]:
            key = _plain_key(str(name)[:_MAX_KEY])
            if key in _CURRENCIES and isinstance(value, str):
                return currency_of(value, page.currency_hints)
            inner = _first(value)
            if isinstance(inner, dict) and depth < 2 and (depth or key in _PRICES):
                waiting.append((inner, depth + 1))
    return None


def _price_pair(keys: Lowered, currency: str | None) -> tuple[Decimal | None, Decimal | None]:
    """The price and the price before; of several the lower is paid and the higher was."""
    found = [a for key in _PRICES if (a := _amount(keys.get(key), currency))]
    before = [a for key in _LIST_PRICES if (a := _amount(keys.get(key), currency))]
    if not found:
        found = [v.price for v in _variants(keys)[:1] if v.price]
    if not found:
        return None, None
    paid = found[0] if keys.get("saleprice") or len(found) == 1 else min(found[:3])
    higher = [a for a in (*before, *found) if a > paid]
    paid, former = paid, min(higher, default=None)
    if not _IN_CENTS.isdisjoint(keys) and isinstance(_first(keys.get("price")), int):
        return paid / 100, former / 100 if former else None
    return paid, former


def _amount(value: Any, currency: str | None, depth: int = 0) -> Decimal | None:
    value = _first(value)
    if isinstance(value, dict) and depth < 3:
        lowered = _lowered(value, 60)
        for part in (*_PRICES, *_PARTS):
            if part in lowered and (amount := _amount(lowered[part], currency, depth + 1)):
                return amount / 100 if part == "centamount" else amount
        return None
    amount = machine_amount(value, currency)
    return amount or None


def _availability(keys: Lowered) -> Availability | None:
    for key in _SOLD_OUT:
        if isinstance(keys.get(key), bool):
            return Availability.OUT_OF_STOCK if keys[key] else Availability.IN_STOCK
    return next((a for key in _STOCKS if (a := term_of(_named(keys.get(key))))), None)


def _holds_objects(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _variants(keys: Lowered) -> tuple[Variant, ...]:
    listed = keys.get("variants")
    if not isinstance(listed, list):
        return ()
    found = (_variant(each) for each in listed[:_MAX_VARIANTS] if isinstance(each, dict))
    return tuple(dict.fromkeys(each for each in found if each != Variant()))


def _variant(item: dict[str, Any]) -> Variant:
    keys = _lowered(item, 60)
    price, _ = _price_pair({**keys, "variants": None}, None)
    return Variant(
        sku=next((c for key, _ in _SKUS if (c := sku_of(_first(keys.get(key))))), None),
        name=_name(keys),
        price=price,
        availability=_availability(keys),
        gtin=next((g for key in _GTINS if (g := gtin_of(_first(keys.get(key))))), None),
    )
