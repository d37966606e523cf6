"""The product of a page: the facts of all readers and of a site parser, merged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from urllib.parse import parse_qsl, unquote, urlsplit

from forager.extract.product.annotated import RDFA, read_annotations
from forager.extract.product.dom.brands import brand_facts, label_facts, link_facts, title_facts
from forager.extract.product.dom.codes import attribute_facts, code_facts, shown_spellings
from forager.extract.product.dom.prices import price_facts
from forager.extract.product.dom.stock import stock_facts, text_stock_facts
from forager.extract.product.dom.view import DomView
from forager.extract.product.images import picture_facts
from forager.extract.product.main_item import choose_main
from forager.extract.product.merge import merge
from forager.extract.product.meta import meta_facts
from forager.extract.product.page import ProductPage
from forager.extract.product.page_quantity import quantity_on
from forager.extract.product.places import LearnedPlace, learned_facts, with_place, without_stated
from forager.extract.product.product import Fact, FieldName, Product
from forager.extract.product.schema import Item, facts_of, listed, text_of, types_of
from forager.extract.product.script.state import state_facts
from forager.extract.product.wording import (
    alike,
    brand_of,
    category_of,
    count_of,
    name_of,
    rating_of,
)


def extract_product(
    page: ProductPage, overrides: Iterable[Fact] = (), place: LearnedPlace | None = None
) -> Product:
    """The merged product; `overrides` are the facts of a site parser, and win field by field."""
    view = DomView(page)
    product = _extract(view, overrides, place)
    quantity = quantity_on(view, product)
    return product if quantity is None else replace(product, quantity=str(quantity))


def _extract(view: DomView, overrides: Iterable[Fact], place: LearnedPlace | None) -> Product:
    page, facts = view.page, _facts_in(view)
    if place is None:
        return merge((*facts, *overrides), page)
    shown = tuple(learned_facts(page, facts, place))
    read = without_stated(facts, shown) if place.shown_wins else facts
    product = merge((*read, *shown, *overrides), page)
    return with_place(product, page, facts, place)


def find_facts(page: ProductPage) -> tuple[Fact, ...]:
    """The facts of every part of the page about its product."""
    return _facts_in(DomView(page))


def _facts_in(view: DomView) -> tuple[Fact, ...]:
    page = view.page
    facts = [*_structured_facts(page), *meta_facts(page), *address_facts(page)]
    facts.extend(price_facts(view, stated=_stated_prices(facts)))
    facts.extend((*_visible_facts(view), *code_facts(view)))
    if not _known(FieldName.BRAND, facts, 0.6):
        facts.extend((*label_facts(view), *link_facts(view)))
    missing = {name for name in _STATED if not _known(name, facts, 0.55)}
    if missing:
        stated = state_facts(page, facts, brand_only=missing == {FieldName.BRAND})
        facts.extend(f for f in stated if missing & _WITH.get(f.field, {f.field}))
    if not _known(FieldName.BRAND, facts, 0.45):
        facts.extend(title_facts(view))
    if not _known(FieldName.AVAILABILITY, facts, 0.5):
        facts.extend(text_stock_facts(view))
    if not _known(FieldName.IMAGES, facts, 0.5):
        facts.extend(picture_facts(view))
    facts.extend(shown_spellings(view, {f.value for f in facts if f.field is FieldName.SKU}))
    return tuple(facts)


# fields worth a search through the scripts; the others are taken with a price or a SKU only
_STATED = (FieldName.PRICE, FieldName.SKU, FieldName.BRAND)
_WITH = {
    name: frozenset([FieldName.PRICE, FieldName.SKU]) for name in FieldName if name not in _STATED
}


def _stated_prices(facts: Iterable[Fact]) -> frozenset[Decimal]:
    """The prices that the data of the page states."""
    prices = (f.value for f in facts if f.field is FieldName.PRICE and f.confidence >= 0.7)
    return frozenset(prices)


def _known(field: FieldName, facts: Iterable[Fact], confidence: float) -> bool:
    return any(fact.field is field and fact.confidence >= confidence for fact in facts)


def _structured_facts(page: ProductPage) -> Iterator[Fact]:
    yield from _item_facts(page.linked_data, "json-ld", 0.92, page)
    microdata, orphans = page.microdata
    yield from _item_facts(microdata, "microdata", 0.88, page)
    if orphans.get("price") or orphans.get("offers"):
        yield from facts_of(_as_item(orphans), "microdata:orphan", 0.6, page)
    else:
        yield from _lone_brand(orphans)
    if page.elements.rdfa:
        rdfa, _ = read_annotations(page.elements.rdfa, RDFA)
        yield from _item_facts(rdfa, "rdfa", 0.85, page)


def _item_facts(
    items: Iterable[Item], place: str, trust: float, page: ProductPage
) -> Iterator[Fact]:
    known = list(items)
    if (main := choose_main(known, page)) is not None:
        item, confidence = main
        yield from facts_of(item, f"{place}:Product", trust * confidence, page)
    for item in known:
        if "breadcrumblist" in types_of(item):
            path = trim(category_of(_crumbs(item)), page.titles)
            if path:
                yield Fact(FieldName.CATEGORY, path, trust * 0.85, f"{place}:BreadcrumbList")
                return


def _crumbs(item: Item) -> list[str | None]:
    elements = [each for each in listed(item.get("itemListElement"))[:40] if isinstance(each, dict)]
    return [name_of(text_of(each.get("name")) or text_of(each.get("item"))) for each in elements]


def _lone_brand(orphans: Item) -> Iterator[Fact]:
    """The one brand of a page that marks no item; several are those of a list."""
    named = listed(orphans.get("brand")) or listed(orphans.get("manufacturer"))
    brands = {brand for each in named if (brand := brand_of(text_of(each)))}
    if len(brands) == 1:
        yield Fact(FieldName.BRAND, brands.pop(), 0.6, "microdata:orphan")


def _as_item(orphans: Item) -> Item:
    """Properties without an item: a price among them is an offer's."""
    item = {name: value for name, value in orphans.items() if name != "name"}
    if "offers" not in item:
        item["offers"] = {
            name: value for name, value in orphans.items()
            if name in ("price", "priceCurrency", "availability", "lowPrice", "sku")
        }  # fmt: skip
    return item


def _visible_facts(view: DomView) -> Iterator[Fact]:
    if view.heading is not None and (name := name_of(view.heading.node.text(separator=" "))):
        yield Fact(FieldName.NAME, name, 0.65, "dom:h1")
    for read in (stock_facts, attribute_facts, brand_facts, crumb_facts, star_facts):
        yield from read(view)


_PARAMETERS = frozenset(
    ["id", "pid", "sku", "productid", "product_id", "product-id", "itemid", "item_id", "item",
     "prodid",
     "products_id", "asin", "code", "goodsno", "goods_no", "artnr", "variant", "skuid", "goodsid"]
)  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")
_CODE = re.compile(
    r"[A-Za-z]{0,4}\d{4,20}|\d{5,20}[A-Za-z]{0,2}|(?=[A-Z0-9]*\d)[A-Z][A-Z0-9]{7,14}"
)
_EXTENSION = re.compile(r"\.(?:html?|php|aspx?|jsp|do)$", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAX_QUOTED = 2_000_000


def address_facts(page: ProductPage) -> Iterator[Fact]:
    """Codes in the URL, with a higher confidence if they are also values in the page's data."""
    for code, trust in _codes(page.url):
        quoted = _quoted(code.encode(), page.source)
        yield Fact(FieldName.SKU, code, trust + (0.12 if quoted else 0.0), "url")


def _codes(url: str) -> Iterator[tuple[str, float]]:
    parts = urlsplit(url)
    for name, value in parse_qsl(parts.query, max_num_fields=None)[:30]:
        if (
            name.lower() in _PARAMETERS
            and re.fullmatch(r"[\w./-]{3,40}", value)
            and re.search(r"\d", value)
        ):
            yield value, 0.5
    segments = [unquote(s) for s in parts.path.split("/") if s][-4:]
    for place, segment in enumerate(reversed(segments)):
        bare = _EXTENSION.sub("", segment)
        if _CODE.fullmatch(bare):
            if not _YEAR.fullmatch(bare):
                yield bare, 0.52 - 0.05 * place
            continue
        tokens = re.split(r"[-_.,]", bare)
        # a code stands at either end of a name
        for token in (tokens[-1], tokens[0]):
            if _CODE.fullmatch(token) and not _YEAR.fullmatch(token) and place < 2:
                yield token, 0.45 - 0.05 * place


def _quoted(code: bytes, source: bytes) -> bool:
    at = source.find(code, 1, _MAX_QUOTED)
    while at > 0:
        around = source[at - 1 : at], source[at + len(code) : at + len(code) + 1]
        if around in ((b'"', b'"'), (b"'", b"'")):
            return True
        at = source.find(code, at + 1, _MAX_QUOTED)
    return False


_HOME = frozenset(
    ["home", "homepage", "start", "startseite", "accueil", "inicio", "início", "domů", "domov",
     "etusivu",
     "главная", "головна", "strona główna", "ana sayfa", "ホーム", "トップ", "首頁", "首页", "홈",
     "hem",
     "forside", "hjem", "főoldal", "acasă", "all", "back", "shop"]
)  # fmt: skip


def crumb_facts(view: DomView) -> Iterator[Fact]:
    for element in view.elements.crumbs[:20]:
        links = [a.text(separator=" ") for a in element.node.css("a, [itemprop=name]")[:30]]
        path = trim(category_of(links), view.page.titles)
        if path:
            yield Fact(FieldName.CATEGORY, path, 0.6, "dom:breadcrumbs")
            return


def trim(path: tuple[str, ...], titles: tuple[str, ...]) -> tuple[str, ...]:
    """Without the home page at its start and the product at its end."""
    names = [n for n in path if any(map(str.isalnum, n))]
    if names and names[0].lower() in _HOME:
        names = names[1:]
    if len(names) > 1 and titles and alike(names[-1], titles[0]) > 0.9 and len(names[-1]) > 12:
        names = names[:-1]
    return tuple(names)


_STARS = re.compile(
    r"(\d(?:[.,]\d{1,2})?)\s{0,3}(?:/|out of|von|sur|su|de|av|van|z|из|of)\s{0,3}(5|10)(?!\d)"
    r"|(\d[.,]\d)\s{0,2}(?:stars?|sterne)",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(\d{1,3}(?:[.,\u00a0]\d{3}){1,2}|\d{1,7})\s{0,3}(?:customer |global |verified )?"
    r"(?:reviews?|ratings?"
    r"|bewertungen|rezensionen"
    r"|avis|évaluations|recensioni|voti|reseñas|opiniones|valoraciones|hodnoten|recenz|opinii"
    r"|отзыв|оценок|beoordelingen)",
    re.IGNORECASE,
)


def star_facts(view: DomView) -> Iterator[Fact]:
    rated = counted = False
    for element in view.elements.ratings[:120]:
        if view.distance(element) > 600 or view.surroundings.of(element.node).elsewhere:
            continue
        attributes = element.attributes
        text = attributes.get("title") or attributes.get("aria-label") or ""
        text = " ".join(f"{text} {element.node.text(separator=' ')[:400]}".split())[:200]
        stars = _STARS.search(text)
        if not rated and stars and (value := rating_of(stars[1] or stars[3], stars[2])):
            rated = True
            yield Fact(FieldName.RATING, value, 0.5, "dom:rating")
        count = _COUNT.search(text)
        if not counted and count and (number := count_of(count[1])):
            counted = True
            yield Fact(FieldName.REVIEW_COUNT, number, 0.5, "dom:rating")
        if rated and counted:
            return
