# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Visible brands: labeled, in an element with that name, linked, or in the title."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from forager.extract.product.dom.view import DomView
from forager.extract.product.elements import BRAND_ATTRIBUTES, Element, Text
from forager.extract.product.price import money_in
from forager.extract.product.product import Fact, FieldName
from forager.extract.product.wording import (
    BRAND_LABEL,
    BRAND_LABELS,
    CALL_STARTS,
    all_called,
    brand_of,
    code_key,
    maker_called,
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
_LOGO = re.compile(
    r"\s+(?:logo|brand(?: page)?)$|^(?:logo|go to|link to)\s+(?:of\s+|the\s+)?", re.IGNORECASE
)
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
_COLON = re.compile(r"^[\s:：–—-]+")
_MAX_BRAND = 50
_NEAR = 400
_BESIDE = 60
_ABOUT = re.compile(r"About (?:the brand )?(.{2,40})")
# texts after the heading that may say who made the product
_BELOW = 8
_NO_TEXT_TAGS = frozenset(["script", "style", "input", "select", "form", "ul", "nav"])


def label_facts(view: DomView) -> Iterator[Fact]:
    """The brand beside the first label that names one, and the maker below the heading."""
    lines = [each for each in view.texts if len(each[2]) < 100]
    yield from _call_facts(lines, view)
    for at, (_, _, text) in enumerate(lines):
        # most texts begin with no label
        found = _LINE.fullmatch(text) if text[:2].lower() in _STARTS else None
        if found is None or (found["value"] and not found["mark"]):
            continue
        value = found["value"] or _following(lines, at)
        if text[:8].lower() == "designer":
            # the brand of clothes has a page in the shop, a person who drew furniture has none
            value = _linked_text(lines[at + 1 : at + 2], view)
        brand = shown_brand(value)
        if brand and len(brand) < 40 and not _is_elsewhere(lines[at], view):
            yield Fact(FieldName.BRAND, brand, 0.58, "dom:label")
            break
    if brand := _byline(lines, view):
        yield Fact(FieldName.BRAND, brand, 0.5, "dom:byline")


def _call_facts(lines: list[Text], view: DomView) -> Iterator[Fact]:
    """The brand of which the page offers more: "More from Acme", "Visit the Acme store"."""
    calls = [
        each for each in lines
        if each[0] >= view.start and len(each[2]) < 60 and each[2][:3].lower() in CALL_STARTS
    ]  # fmt: skip
    for each in calls:
        called = _about(each[2], view) or maker_called(each[2]) or _all_of(each, view)
        if called and words_in(called) <= words_in(view.crumbs):
            continue  # the category of the product
        if brand := shown_brand(called or ""):
            bonus = 0.12 if words_in(brand) <= words_in(" ".join(view.page.titles)) else 0.0
            yield Fact(FieldName.BRAND, brand, 0.46 + bonus, "dom:call")
            return


def _about(text: str, view: DomView) -> str | None:
    about = _ABOUT.fullmatch(text)
    return about[1] if about and _begins_title(about[1], view) else None


def _all_of(line: Text, view: DomView) -> str | None:
    """A brand of which the shop has more."""
    is_far = line[0] > view.start + _NEAR
    return None if is_far or _is_elsewhere(line, view) else all_called(line[2])


def _following(lines: list[Text], at: int) -> str:
    """The text after a label, without the colon that may stand between them."""
    texts = (_COLON.sub("", text) for _, _, text in lines[at + 1 : at + 3])
    return next((text for text in texts if text), "")


def _is_elsewhere(text: Text, view: DomView) -> bool:
    node = text[1].parent
    return node is not None and view.surroundings.of(node).elsewhere


def _byline(lines: list[Text], view: DomView) -> str | None:
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


def _linked_text(texts: list[Text], view: DomView) -> str:
    linked = (t for t in texts if t[1].parent and view.surroundings.of(t[1].parent).linked)
    return next((text for _, _, text in linked), "")


def brand_facts(view: DomView) -> Iterator[Fact]:
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


def link_facts(view: DomView) -> Iterator[Fact]:
    """A link near the heading that leads to the page of a brand, or the logo of one."""
    title = words_in(" ".join(view.page.titles))
    for element, brand in (*_brand_links(view), *_logos(view), *_title_links(view)):
        if brand and _is_beside(element, view):
            bonus = 0.15 if words_in(brand) <= title else 0.0
            yield Fact(FieldName.BRAND, brand, 0.45 + bonus, "dom:brand link")
            return


def _brand_links(view: DomView) -> Iterator[tuple[Element, str | None]]:
    for element in view.anchors:
        if _BRAND_PATH.search((element.attributes.get("href") or "")[:300]):
            text = element.node.text(separator=" ")
            yield element, shown_brand(text) if text.strip() else _picture_brand(element)


def _logos(view: DomView) -> Iterator[tuple[Element, str | None]]:
    for element in view.elements.images[:300]:
        attributes = element.attributes
        alt = attributes.get("alt") or ""
        address = (attributes.get("src") or "")[:300]
        if not alt or len(alt) > 2 * _MAX_BRAND:
            continue
        if _LOGO.search(alt) or _BRAND_PATH.search(address) or _is_small_part(alt, view):
            yield element, shown_brand(_LOGO.sub("", alt))


def _is_small_part(alt: str, view: DomView) -> bool:
    """Whether a description begins the title, and is no short name of the product in a photo."""
    return _begins_title(alt, view) and 2 * len(alt.split()) < len(view.page.titles[0].split())


def _title_links(view: DomView) -> Iterator[tuple[Element, str | None]]:
    """Links beside the heading that repeat its first words; those of breadcrumbs name a kind."""
    for element in view.anchors:
        if abs(element.order - view.start) <= _BESIDE:
            text = " ".join(element.node.text(separator=" ")[:300].split())
            if _begins_title(text, view) and text not in view.crumbs and not _is_listed(element):
                yield element, shown_brand(text)


def _is_listed(link: Element) -> bool:
    """Whether a link is one of several side by side: categories, and tags of the product."""
    parent, before, after = link.node.parent, link.node.prev, link.node.next
    # the text between two links is a node as well
    beside = [before, before and before.prev, after, after and after.next]
    is_link = any(each is not None and each.tag == "a" for each in beside)
    return is_link or (parent is not None and parent.tag == "li")


def _begins_title(text: str, view: DomView) -> bool:
    """Whether a text is the first words of the product's name, but not all of them."""
    title = view.page.titles[0] if view.page.titles else ""
    named = 2 < len(text) < _MAX_BRAND and text[0].isupper() and text.count(" ") < _MAX_WORDS
    return named and title.startswith(f"{text} ")


def title_facts(view: DomView) -> Iterator[Fact]:
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
    # after a colon stands the value of another label
    if ": " in brand or _NOT_BRAND.search(brand) or any(money.symbol for money in money_in(brand)):
        return None
    return _COUNT.sub("", brand) or None


def _is_beside(element: Element, view: DomView) -> bool:
    if view.distance(element) > _NEAR:
        return False
    around = view.surroundings.of(element.node)
    return not (around.elsewhere or around.tile)


def _named_brand(element: Element) -> str | None:
    if element.node.tag in _NO_TEXT_TAGS:
        return None
    text = element.node.text(separator=" ")
    return shown_brand(text) if text.strip() else _picture_brand(element)


def _picture_brand(element: Element) -> str | None:
    """The brand of a logo: the description of the picture, or the name of its link."""
    pictures = element.node.css("img[alt], [aria-label], a[title]")[:3]
    described = [element.attributes, *(each.attributes for each in pictures)]
    texts = (each.get(name) for name in ("alt", "aria-label", "title") for each in described)
    named = (shown_brand(_LOGO.sub("", text)) for text in texts if text)
    return next((brand for brand in named if brand), None)
