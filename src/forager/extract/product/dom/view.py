# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""The visible page: its heading, its buy button, and the surroundings of elements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from selectolax.lexbor import LexborNode

from forager.extract.product.dom.surroundings import SurroundingsMap
from forager.extract.product.elements import Element, Elements, Text, anchors_near, tag_id
from forager.extract.product.page import ProductPage
from forager.extract.product.wording import alike

# stands before every text where texts are joined; no text of a page has it
TEXT_START = "\0"
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


@dataclass(frozen=True, slots=True)
class BuyButton:
    """A button that orders the product."""

    element: Element
    enabled: bool


@dataclass(frozen=True)
class DomView:
    """Properties of the page that are shared by the readers of the DOM."""

    page: ProductPage

    @property
    def elements(self) -> Elements:
        return self.page.elements

    @cached_property
    def surroundings(self) -> SurroundingsMap:
        return SurroundingsMap([self.heading.node] if self.heading else [])

    @cached_property
    def heading(self) -> Element | None:
        """The heading that names the product: the one most like the page's title."""
        title = self.page.title
        headings = [
            (_likeness(each.node, title), -each.order, each)
            for each in [h for h in self.elements.headings if len(h.node.text().strip()) > 1][:10]
        ]
        # menus, cookie notices and dialogs have headings too
        named = [h for h in headings if h[0] >= _LIKE_TITLE or not _is_in_menu(h[2].node)]
        return max(named, key=lambda h: h[:2])[2] if named else self._titled()

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
        start = self.start
        found = [e for e, text in self._controls() if _is_buy(e, text)]
        found = [e for e in found if not self.surroundings.of(e.node).elsewhere]
        if not found:
            return None
        best = min(found, key=lambda e: (e.order < start, abs(e.order - start)))
        return BuyButton(
            best, any(not _disabled(e) for e in found if e.order >= start) or not _disabled(best)
        )

    @cached_property
    def anchors(self) -> list[Element]:
        """The links near the heading."""
        first, last = self.start - _NEAR, self.start + _NEAR
        return list(anchors_near(self.page.tree, first, last))

    @cached_property
    def crumbs(self) -> str:
        """The beginning of the breadcrumbs."""
        return " ".join(each.node.text(separator=" ")[:500] for each in self.elements.crumbs[:5])

    @property
    def texts(self) -> list[Text]:
        """The short texts that stand in elements, in the order of the page."""
        return self.elements.texts

    @cached_property
    def _joined_texts(self) -> str:
        return TEXT_START.join(["", *[text for _, _, text in self.texts]]).lower()

    def texts_with(self, pattern: re.Pattern[str]) -> Iterator[int]:
        """The indexes of the texts in which a lower-case pattern is found: one search for all.

        The pattern may use `TEXT_START`, and matches within one text.
        """
        joined, index, counted = self._joined_texts, -1, 0
        for found in pattern.finditer(joined):
            # the number of texts that start before the end of the match
            new, counted = joined.count(TEXT_START, counted, found.end()), found.end()
            index += new
            if new:
                yield index

    @cached_property
    def buttons(self) -> list[tuple[Element, str]]:
        """The buttons with their texts."""
        return [(element, control_text(element)) for element in self.elements.buttons[:300]]

    @cached_property
    def fields(self) -> list[tuple[Element, str, str]]:
        """The fields of forms that have a value, with their names in lower case and the values."""
        read = ((element, element.attributes) for element in self.elements.inputs[:300])
        return [
            (element, (attributes.get("name") or attributes.get("id") or "").lower(), value)
            for element, attributes in read
            if (value := attributes.get("value"))
        ]

    def _controls(self) -> list[tuple[Element, str]]:
        inputs = [e for e in self.elements.inputs if e.names in ("submit", "button", "image")]
        links = [e for e in self.elements.buys if e.node.tag == "a"]
        named = ((element, control_text(element)) for element in (*inputs[:100], *links[:100]))
        return sorted((*self.buttons, *named), key=lambda control: control[0].order)

    @cached_property
    def start(self) -> int:
        """The position of the heading, or of the first element of a page without one."""
        return self.heading.order if self.heading else 0

    def distance(self, element: Element) -> int:
        """Elements between this one and the heading; elements before the heading count double."""
        gap = element.order - self.start
        return gap if gap >= 0 else -2 * gap


_LIKE_TITLE = 0.5
_NEAR = 400
_MENU_TAGS = frozenset(map(tag_id, ["nav", "footer", "dialog", "template"]))
_MENU_ROLES = frozenset(["navigation", "menu", "menubar", "dialog", "alertdialog", "contentinfo"])
_MENU_NAMES = re.compile(r"(?:^|[\s_-])(?:menu|nav|navbar|navigation|cookies?|consent)(?:$|[\s_-])")
_MAX_CLIMB = 12


def _is_in_menu(node: LexborNode) -> bool:
    above: LexborNode | None = node
    for _ in range(_MAX_CLIMB):
        if above is None or above.tag in ("main", "article", "body"):
            return False
        attributes = above.attributes
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"[:300].lower()
        if above.tag_id in _MENU_TAGS or attributes.get("role") in _MENU_ROLES:
            return True
        if _MENU_NAMES.search(names):
            return True
        above = above.parent
    return False


def _likeness(node: LexborNode, title: str | None) -> float:
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
    attributes = element.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".lower()
    return bool(_BUY_NAMES.search(names[:300]))


@lru_cache(maxsize=16_384)
def _says_buy(text: str) -> bool:
    return bool(_BUY.search(text))


def _disabled(element: Element) -> bool:
    attributes = element.attributes
    if "disabled" in attributes or attributes.get("aria-disabled") == "true":
        return True
    return "disabled" in (attributes.get("class") or "").lower().split()
