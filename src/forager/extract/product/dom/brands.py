# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Visible brands: labeled, in an element with that name, linked, or in the title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from forager.extract.product.dom.view import View
from forager.extract.product.elements import BRAND_ATTRIBUTES, Element, Text, anchors_near
from forager.extract.product.price import money_in
from forager.extract.product.record import Fact, FieldName
from forager.extract.product.wording import (
    BRAND_LABEL,
    BRAND_LABELS,
    brand_of,
    code_key,
    words_in,
)

_LINE = re.compile(
    rf"{BRAND_LABEL}\s{{0,3}}(?P<mark>[:：]|\s[-–|]\s|)\s{{0,3}}(?P<value>.{{0,60}})", re.IGNORECASE
)
_STARTS = frozenset(label[:2] for label in (*BRAND_LABELS, "product", "item"))
# a maker named below the heading: "by Acme"
_BYLINE = re.compile(r"(?:by|von|par|door|av|af)(?::?\s(?P<value>.{2,40})|:?)", re.IGNORECASE)
_BRAND_PATH = re.compile(
    r"/(?:brands?|marcas?|marques?|marken?|merken?|hersteller|manufacturers?|fabricants?|znacky?"
    r"|producent|vyrobc[ei]|varumarken?|brend|marka|marchi|designers?)(?:[/=_-]|\.|$)"
    r"|/collections/vendors\b|[?&](?:brand|marca|marque|manufacturer)(?:_id)?=",
    re.IGNORECASE,
)
_LOGO = re.compile(r"\s+logo$|^logo\s+(?:of\s+)?", re.IGNORECASE)
# sellers, reviews and controls stand in elements named after brands too
_NOT_BRAND = re.compile(
    r"\b(?:sold|shipped|fulfilled|verkauft|vendu|vendido|venduto|verkocht)\b|\breviews?\b|\bratings?\b"
    r"|\b(?:add|sign|log|read|learn|choose|select|contact|show) |\bclick\b|\ball brands\b",
    re.IGNORECASE,
)
_BEFORE_NAME = re.compile(
    r"^\W*(?:\d[\d.,]*\s*\W\s*)?(?:(?:buy|shop|acheter|comprar|kaufen)\s+)?", re.IGNORECASE
)
# accessories are named after the brand of another product
_ACCESSORY = re.compile(
    r"\b(?:compatible|replacement|spare|case|cover|strap|protector|hülle|ersatz\w*|coque|étui"
    r"|funda|carcasa|custodia|hoesje|pouzdro|etui|чехол)\b",
    re.IGNORECASE,
)
# words of a brand
_MAX_WORDS = 4
_COUNT = re.compile(r"\s*\(\d{1,5}\)$")
_COLON = re.compile(r"^[\s:：]+")
_MAX_BRAND = 50
_NEAR = 400
# texts after the heading that may say who made the product
_BELOW = 8
_NO_TEXT_TAGS = frozenset(["script", "style", "input", "select", "form", "ul", "nav"])


def label_facts(view: View) -> Iterator[Fact]:
    """The brand beside the first label that names one, and the maker below the heading."""
    lines = [each for each in view.texts if len(each[2]) < 100]
    for at, (_, _, text) in enumerate(lines):
        # most texts begin with no label
        found = _LINE.fullmatch(text) if text[:2].lower() in _STARTS else None
        if found is None or (found["value"] and not found["mark"]):
            continue
        brand = shown_brand(found["value"] or _following(lines, at))
        if brand and len(brand) < 40 and not _is_elsewhere(lines[at], view):
            yield Fact(FieldName.BRAND, brand, 0.58, "dom:label")
            break
    if brand := _byline(lines, view):
        yield Fact(FieldName.BRAND, brand, 0.5, "dom:byline")


def _following(lines: list[Text], at: int) -> str:
    """The text after a label, without the colon that may stand between them."""
    texts = (_COLON.sub("", text) for _, _, text in lines[at + 1 : at + 3])
    return next((text for text in texts if text), "")


def _is_elsewhere(text: Text, view: View) -> bool:
    node = text[1].parent
    return node is not None and view.surroundings.of(node).elsewhere


def _byline(lines: list[Text], view: View) -> str | None:
    if view.heading is None:
        return None
    inside = view.heading.node.text(separator=" ")
    below = [each for each in lines if each[0] >= view.start and each[2] not in inside][:_BELOW]
    for at, (_, _, text) in enumerate(below):
        if len(text) < 50 and (found := _BYLINE.fullmatch(text)):
            brand = shown_brand(found["value"] or _linked_text(below[at + 1 : at + 2], view))
            # dates and sentences follow the same words
            named = brand and brand[0].isupper() and not any(map(str.isdigit, brand))
            return brand if named and not _is_elsewhere(below[at], view) else None
    return None


def _linked_text(texts: list[Text], view: View) -> str:
    linked = (t for t in texts if t[1].parent and view.surroundings.of(t[1].parent).linked)
    return next((text for _, _, text in linked), "")


def brand_facts(view: View) -> Iterator[Fact]:
    """Elements near the heading that are named after brands, or have an attribute for one."""
    title = words_in(" ".join(view.page.titles))
    beside = [each for each in view.elements.brands[:80] if _is_beside(each, view)]
    for element in beside:
        if brand := _named_brand(element):
            bonus = 0.12 if words_in(brand) <= title else 0.0
            yield Fact(FieldName.BRAND, brand, 0.5 + bonus, f"dom:{element.names[:40].strip()}")
            break
    values = [value for _, name, value in view.fields if code_key(name) in _BRAND_FIELDS]
    values += [value for each in beside for value in _brand_attributes(each)]
    stated = {brand for value in values if (brand := shown_brand(value))}
    # several brands are those of a list of products, and a shop's abbreviation is no name
    if len(stated) == 1 and (len(brand := stated.pop()) > 3 or not brand.islower()):
        yield Fact(FieldName.BRAND, brand, 0.54, "dom:data-brand")


def _brand_attributes(element: Element) -> Iterator[str]:
    attributes = element.attributes
    return (value for name in BRAND_ATTRIBUTES if (value := attributes.get(name)))


# names of hidden fields, without punctuation
_BRAND_FIELDS = frozenset(["brand", "brandname", "productbrand", "itembrand", "manufacturer"])


def link_facts(view: View) -> Iterator[Fact]:
    """A link near the heading that leads to the page of a brand, or the logo of one."""
    title = words_in(" ".join(view.page.titles))
    for element, brand in (*_brand_links(view), *_logos(view)):
        if brand and _is_beside(element, view):
            bonus = 0.15 if words_in(brand) <= title else 0.0
            yield Fact(FieldName.BRAND, brand, 0.45 + bonus, "dom:brand link")
            return


def _brand_links(view: View) -> Iterator[tuple[Element, str | None]]:
    first, last = view.start - _NEAR, view.start + _NEAR
    for order, node in anchors_near(view.page.tree, first, last):
        if _BRAND_PATH.search((node.attributes.get("href") or "")[:300]):
            element = Element(order, node)
            yield element, shown_brand(node.text(separator=" ")) or _picture_brand(element)


def _logos(view: View) -> Iterator[tuple[Element, str | None]]:
    for element in view.elements.images[:300]:
        attributes = element.attributes
        alt = attributes.get("alt") or ""
        address = (attributes.get("src") or "")[:300]
        if alt and (_LOGO.search(alt) or _BRAND_PATH.search(address)):
            yield element, shown_brand(_LOGO.sub("", alt))


def title_facts(view: View) -> Iterator[Fact]:
    """A well-known brand with which a title begins, or whose own shop this is."""
    titles = [title for title in view.page.titles if not _ACCESSORY.search(title)]
    names = (name for title in titles for name in _beginnings(title))
    if known := next((name for name in names if code_key(name) in known_brands()), None):
        yield Fact(FieldName.BRAND, known, 0.45, "title")
        return
    words = (word for title in titles for word in title.split())
    own = view.page.shop_names & known_brands()
    if brand := next((word for word in words if code_key(word) in own), None):
        yield Fact(FieldName.BRAND, brand, 0.4, "title:shop")


def _beginnings(title: str) -> Iterator[str]:
    """The first words of a title, after a price or a call to buy, longest first."""
    words = _BEFORE_NAME.sub("", title).split(" ", _MAX_WORDS)
    for count in range(min(_MAX_WORDS, len(words) - 1), 0, -1):
        if (name := " ".join(words[:count]).rstrip(",:;-–|®™ "))[:1].isupper():
            yield name


@cache
def known_brands() -> frozenset[str]:
    """The keys of the names in `brands.txt`, none of which is also an ordinary word."""
    written = files("forager.extract.product").joinpath("brands.txt").read_text("utf-8")
    names = re.split(r"[,\n]", written)
    return frozenset(code_key(name.strip()) for name in names if name.strip())


def shown_brand(text: str) -> str | None:
    """The brand of a visible text; None for prices, sentences and calls to action."""
    if len(text) > 300:
        return None
    brand = brand_of(" ".join(text.split()))
    if brand is None or len(brand) >= _MAX_BRAND or brand[-1] in ".!?:,":
        return brand if brand and re.fullmatch(r"(?:\w\.){2,5}", brand) else None
    if _NOT_BRAND.search(brand) or any(money.symbol for money in money_in(brand)):
        return None
    return _COUNT.sub("", brand) or None


def _is_beside(element: Element, view: View) -> bool:
    if view.distance(element) > _NEAR:
        return False
    around = view.surroundings.of(element.node)
    return not (around.elsewhere or around.tile)


def _named_brand(element: Element) -> str | None:
    if element.node.tag in _NO_TEXT_TAGS:
        return None
    return shown_brand(element.node.text(separator=" ")) or _picture_brand(element)


def _picture_brand(element: Element) -> str | None:
    picture = element.node.css_first("img[alt]")
    alt = (picture.attributes.get("alt") or "") if picture is not None else ""
    return shown_brand(_LOGO.sub("", alt))
