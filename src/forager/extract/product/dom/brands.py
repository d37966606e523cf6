# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Brands as the page shows them: beside a label, in an element named so, or in a brand link."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forager.extract.product.dom.view import View
from forager.extract.product.elements import Element, anchors_near
from forager.extract.product.price import money_in
from forager.extract.product.record import Fact, FieldName
from forager.extract.product.wording import brand_of, words_in

_BRAND_LABEL = (
    r"(?:Brand|Marke|Marque|Marca|Značka|Merk|Märke|Varumärke|Manufacturer|Hersteller|Výrobce"
    r"|Výrobca|Márka|Gyártó|Marka|Fabricant|Produttore|Fabricante|Producent|Fabrikant|Tillverkare"
    r"|Merkki|Mærke|Merke|Producător|Бренд|Производитель|Торговая марка|Виробник|ブランド|メーカー"
    r"|品牌|브랜드|제조사|العلامة التجارية|מותג|Thương hiệu|Merek|ยี่ห้อ)"
)
_INITIALS = frozenset(label[0] for label in _BRAND_LABEL[3:-1].split("|"))
_BRAND_LINE = re.compile(
    rf"{_BRAND_LABEL}"
    r"(?:\s(?:name|Name))?\s{0,3}(?P<mark>[:：]?)\s{0,3}(?P<value>.{0,60})"
)
_BRAND_PATH = re.compile(
    r"/(?:brands?|marcas?|marques?|marken?|merken?|hersteller|manufacturers?|fabricants?|znacky?"
    r"|producent|vyrobc[ei]|varumarken?|brend|marka)(?:[/=_-]|\.|$)|[?&](?:brand|marca|marque"
    r"|manufacturer)(?:_id)?=",
    re.IGNORECASE,
)
_LOGO = re.compile(r"\s+logo$|^logo\s+(?:of\s+)?", re.IGNORECASE)
_MAX_BRAND = 50
_NEAR = 400
_NO_TEXT_TAGS = frozenset(["script", "style", "input", "select", "form", "ul", "nav"])


def label_facts(view: View) -> Iterator[Fact]:
    """The brand beside the first label that names one."""
    lines = [text for _, _, text in view.texts if len(text) < 100]
    for at, line in enumerate(lines):
        # most begin with no letter of a label
        found = _BRAND_LINE.fullmatch(line) if line[0] in _INITIALS else None
        if found is None or (found["value"] and not found["mark"]):
            continue
        brand = shown_brand(found["value"] or "".join(lines[at + 1 : at + 2]))
        if brand and len(brand) < 40:
            yield Fact(FieldName.BRAND, brand, 0.58, "dom:label")
            return


def brand_facts(view: View) -> Iterator[Fact]:
    """Elements near the heading that are named after brands."""
    title = words_in(" ".join(view.page.titles))
    for element in view.elements.brands[:80]:
        if _is_beside(element, view) and (brand := _named_brand(element)):
            bonus = 0.12 if words_in(brand) <= title else 0.0
            yield Fact(FieldName.BRAND, brand, 0.5 + bonus, f"dom:{element.names[:40].strip()}")
            return


def link_facts(view: View) -> Iterator[Fact]:
    """A link near the heading that leads to the page of a brand."""
    title = words_in(" ".join(view.page.titles))
    start = view.heading.order if view.heading else 0
    for order, node in anchors_near(view.page.tree, start - _NEAR, start + _NEAR):
        attributes = node.attributes
        if not _BRAND_PATH.search((attributes.get("href") or "")[:300]):
            continue
        element = Element(order, node, attributes, "")
        if _is_beside(element, view):
            brand = shown_brand(element.node.text(separator=" ")) or _picture_brand(element)
            if brand:
                bonus = 0.15 if words_in(brand) <= title else 0.0
                yield Fact(FieldName.BRAND, brand, 0.45 + bonus, "dom:brand link")
                return


def shown_brand(text: str) -> str | None:
    """The brand of a visible text; None for prices, sentences and calls to action."""
    if len(text) > 300:
        return None
    brand = brand_of(" ".join(text.split()))
    if brand is None or len(brand) >= _MAX_BRAND or brand[-1] in ".!?:,":
        return brand if brand and re.fullmatch(r"(?:\w\.){2,5}", brand) else None
    return None if any(money.symbol for money in money_in(brand)) else brand


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
