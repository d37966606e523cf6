# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""The page as a reader meets it: its heading, its button to buy, and what surrounds elements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.surroundings import Map
from forager.extract.product.elements import Element, Elements, content_id, tag_id
from forager.extract.product.page import ProductPage

_BUY = re.compile(
    r"add (?:\w+ )?to (?:\w+ )?(?:cart|basket|bag|trolley|order)|buy (?:it )?now|buy this|\bbuy\b"
    r"|^order now"
    r"|purchase|add to my|place (?:bid|order)|in den (?:warenkorb|einkaufswagen)|jetzt kaufen"
    r"|\bkaufen"
    r"|ajouter (?:au|à mon|à la) |acheter|aggiungi al|acquista|añadir (?:al|a la)|agregar al?"
    r"|comprar"
    r"|adicionar ao|in (?:de |mijn )?winkel(?:wagen|mand)|bestellen|lägg (?:i|till)|köp\b|kjøp"
    r"|legg i|læg i"
    r"|køb\b|lisää ostos|osta\b|do košík[ua]|vložiť|přidat do|kúpiť|koupit|do koszyka|kup teraz"
    r"|kosárba"
    r"|adaugă în|cumpără|купить|в корзину|в кошик|придбати|добави в|купи|sepete ekle|satın al"
    r"|προσθήκη"
    r"|カートに(?:入れる|追加)|購入|加入購物車|加入购物车|放入購物車|立即購買|立即购买|直接購買"
    r"|加入購物|장바구니|구매하기|바로\s?구매"
    r"|أضف (?:إلى|الى)|اشتري|הוסף ל|thêm vào giỏ|mua ngay|beli sekarang|tambah ke|หยิบใส่|ซื้อ"
)
_BUY_NAMES = re.compile(
    r"add-?_?to-?_?(?:cart|bag|basket)|addtocart|buy-?_?now|buy-?_?button|btn-?buy|atc\b"
)


_MAX_TEXT = 300
_MAX_TEXTS = 20_000
_TEXT = content_id("text")
_COMMENT = content_id("<!-- -->")
_SILENT_TAGS = frozenset(
    map(tag_id, ["script", "style", "option", "noscript", "textarea", "title"])
)


# how many elements of the body begin before a text, its node, and what it says
Text: TypeAlias = tuple[int, LexborNode, str]


@dataclass(frozen=True, slots=True)
class BuyButton:
    element: Element
    enabled: bool


@dataclass(frozen=True)
class View:
    """Shared by the readers of the DOM, so that each question is answered once."""

    page: ProductPage

    @property
    def elements(self) -> Elements:
        return self.page.elements

    @cached_property
    def surroundings(self) -> Map:
        return Map([self.heading.node] if self.heading else [])

    @cached_property
    def heading(self) -> Element | None:
        """The heading that names the product: the one most like the page's title."""
        headings = [h for h in self.elements.headings if len(h.node.text().strip()) > 1]
        if not headings:
            return self._titled()
        title = self.page.title
        return max(headings[:10], key=lambda h: (_likeness(h.node, title), -h.order))

    def _titled(self) -> Element | None:
        """Pages without `h1` name their product in an element of that name."""
        return next(
            (e for e in self.elements.microdata if e.attributes.get("itemprop") == "name"
             and e.node.tag not in ("meta", "link", "a")
             and _likeness(e.node, self.page.title) >= 0.8),
            None,
        )  # fmt: skip

    @cached_property
    def buy_button(self) -> BuyButton | None:
        """The button nearest after the heading that puts the product into a cart."""
        start = self.heading.order if self.heading else 0
        found = [e for e, text in self._controls() if _is_buy(e, text)]
        found = [e for e in found if not self.surroundings.of(e.node).elsewhere]
        if not found:
            return None
        best = min(found, key=lambda e: (e.order < start, abs(e.order - start)))
        return BuyButton(
            best, any(not _disabled(e) for e in found if e.order >= start) or not _disabled(best)
        )

    @cached_property
    def texts(self) -> list[Text]:
        """The short texts that stand in elements, in the order of the page."""
        body = self.page.tree.body
        found: list[Text] = []
        # elements are counted from the start of the document, as in `elements`
        order = -1 if body is None else _elements_before(body, self.page.tree.root) - 1
        last = 0
        nodes = body.traverse(include_text=True, skip_empty=True) if body is not None else ()
        for node in nodes:
            if (tag := node.tag_id) != _TEXT:
                order += 1
                last = tag
                continue
            # what is not shown is the first thing in its element, and may be long
            if last in _SILENT_TAGS and _is_silent(node.parent):
                continue
            text = node.text_content or ""
            if len(text) < _MAX_TEXT and (text := text.strip()):
                found.append((order, node, text))
                if len(found) > _MAX_TEXTS:
                    break
        return found

    @cached_property
    def buttons(self) -> list[tuple[Element, str]]:
        """With what is written on them."""
        return [(element, control_text(element)) for element in self.elements.buttons[:300]]

    def _controls(self) -> list[tuple[Element, str]]:
        inputs = [e for e in self.elements.inputs if (e.attributes.get("type") or "").lower() in
                  ("submit", "button", "image")]  # fmt: skip
        links = [e for e in self.elements.buys if e.node.tag == "a"]
        named = ((element, control_text(element)) for element in (*inputs[:100], *links[:100]))
        return sorted((*self.buttons, *named), key=lambda control: control[0].order)

    def distance(self, element: Element) -> int:
        """Elements between this one and the heading; what stands before it counts double."""
        if self.heading is None:
            return element.order
        gap = element.order - self.heading.order
        return gap if gap >= 0 else -2 * gap


def _elements_before(body: LexborNode, root: LexborNode | None) -> int:
    count = 0
    for node in root.traverse() if root is not None else ():
        if node.mem_id == body.mem_id:
            break
        count += node.tag_id != _COMMENT
    return count


def _is_silent(node: LexborNode | None) -> bool:
    return node is not None and node.tag_id in _SILENT_TAGS


def _likeness(node: LexborNode, title: str | None) -> float:
    from forager.extract.product.wording import alike

    return alike(node.text(separator=" ")[:500], title)


def control_text(element: Element) -> str:
    attributes = element.attributes
    text = " ".join(element.node.text(separator=" ")[:300].split())
    return (
        text
        or attributes.get("value")
        or attributes.get("title")
        or attributes.get("aria-label")
        or ""
    )


def _is_buy(element: Element, text: str) -> bool:
    if text and len(text) < 60 and _says_buy(text.lower()):
        return True
    names = f"{element.attributes.get('class') or ''} {element.attributes.get('id') or ''}".lower()
    return bool(_BUY_NAMES.search(names[:300]))


@lru_cache(maxsize=16_384)
def _says_buy(text: str) -> bool:
    return bool(_BUY.search(text))


def _disabled(element: Element) -> bool:
    attributes = element.attributes
    if "disabled" in attributes or attributes.get("aria-disabled") == "true":
        return True
    return "disabled" in (attributes.get("class") or "").lower().split()
