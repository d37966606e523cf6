"""The surroundings of an element: the product itself, or other parts of the page."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from forager.extract.product.elements import tag_id

_MAX_CLIMB = 60


class Surroundings(NamedTuple):
    """Properties of the ancestors of an element; each is inherited."""

    elsewhere: bool = False  # other products, menus and footers, reviews
    tile: bool = False  # one of many items, or a box over the page
    hidden: bool = False
    option: bool = False  # one of several variants, stores or ways of delivery
    struck: bool = False
    linked: bool = False
    remark: bool = False  # what a customer or the shop says: reviews, shipping, financing


_ROOT = Surroundings()
_ELSEWHERE = re.compile(
    r"relat(?:ed|ion)|recommend|similar|up-?sell|cross-?_?sell|also-?_?(?:bought|like|view|see"
    r"|consider)"
    r"|sponsor|recent(?:ly)?-?_?(?:view|visit)|viewed|together|accessor(?:y|ies)|suggest|alternativ"
    r"|mini-?_?(?:cart|basket|bag)|cart-?_?(?:drawer|summary|modal|popup)|\bfooter|site-?header"
    r"|\bnav\b"
    r"|navbar|mega-?menu|\bcompare|comparison|competitor|you-?_?may|bestsell|best-?_?sell|trending"
    r"|reviews?-?(?:list|section|content|body)|cookie|newsletter|shipping-?(?:calc|table)|\bads?\b"
    r"|facet|other-?_?(?:product|item|seller|offer)|more-?_?(?:from|like|product|item)|cross-?links"
    r"|popular|bundle|frequently|\bsims\b|day-?deal|dealofday|wishlist|subscribe"
)
_TILE = re.compile(
    r"carousel|slider|swiper|product-?_?(?:list|card|tile|grid|thumb|box)|(?:item"
    r"|goods)-?_?(?:list|card)"
    r"|\bcard\b|\btile\b|modal|popup|pop-?up|overlay|lightbox|tooltip|drawer|\bgrid\b|sidebar"
    r"|teaser"
    r"|promo|banner|\bmenu|shelf|search-?_?result|finance|instal?ment|financ|sticky|warrant"
    r"|protection"
)
_HIDDEN = re.compile(
    r"(?:^|[\s_-])(?:hidden|hide|invisible|d-none|visually-hidden|no-?display|display-?none)(?:$|\s)"
)
_OPTION = re.compile(
    r"swatch|varia(?:nt|tion)s?(?:$|[\s_-])|\bsizes?\b|sizes?-?_?(?:list|select|option|picker|item|btn"
    r"|box|chart|guide)|colou?rs?-?_?(?:list|select|option|picker|item)|option|dropdown|(?:in-?_?)?"
    r"store-?_?(?:stock|avail|pick|list|locat|find|select|info)|pick-?_?up|click-?_?(?:and|n|&)?-?_?"
    r"collect|deliver|shipping|fulfil|\bbranch|filial|post-?code|zip-?code|magasin|tiendas?\b|nearby"
    r"|notif|waitlist|wait-?list|configur"
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
_STRUCK_NAMES = re.compile(
    r"(?<!has-)old-?_?pri[cx]e|pri[cx]e-?_?(?:old|was|before|striked?|crossed|original)\b|was-?_?pri[cx]e"
    r"|strike-?(?:through|d)|strikethrough|line-?through|crossed|\bstroked?\b|\buvp\b|\brrp\b|msrp"
    r"|(?<!has-)(?<!with-)list-?_?pri[cx]e|compare-?_?at|(?:price|product)-?_?uvp|prix-?_?barr|tachado|streichpreis"
)
_REMARK = re.compile(
    r"\breviews?\b|review-?_?(?:text|item|comment)|testimonial|\bcomments?\b|\bq-?(?:and|n)?-?a\b"
    r"|\bfaq|shipping-?_?(?:info|cost|note|text)|delivery-?_?(?:info|cost|note|text)|financ|leasing"
    r"|instal?ment|min(?:imum)?-?_?order"
)
_REMARKED = frozenset(["review", "reviews", "comment", "acceptedAnswer", "suggestedAnswer"])
_STRUCK_TAGS = frozenset(map(tag_id, ["s", "del", "strike"]))
_ELSEWHERE_TAGS = frozenset(map(tag_id, ["footer", "nav", "header", "noscript", "template"]))
_LINK = tag_id("a")
_RELEVANT_TAGS = frozenset([*_STRUCK_TAGS, *_ELSEWHERE_TAGS, _LINK])
_NO_NAMES = (False,) * 6


@lru_cache(maxsize=16_384)
def _named(names: str) -> tuple[bool, ...]:
    lower = names.lower()
    return (
        bool(_ELSEWHERE.search(lower)),
        bool(_TILE.search(lower)),
        bool(_HIDDEN.search(lower)),
        bool(_OPTION.search(lower)),
        bool(_STRUCK_NAMES.search(lower)),
        bool(_REMARK.search(lower)),
    )


class SurroundingsMap:
    """Cache of the surroundings of ancestors, which many elements share."""

    def __init__(self, headings: list[LexborNode]) -> None:
        self._known: dict[int, Surroundings] = {}
        # the elements around the heading contain the product, whatever their names
        self._central = {each.mem_id for node in headings for each in _ancestors(node)}

    def of(self, node: LexborNode) -> Surroundings:
        path: list[LexborNode] = []
        current: LexborNode | None = node
        found = _ROOT
        while current is not None and len(path) < _MAX_CLIMB:
            known = self._known.get(current.mem_id)
            if known is not None:
                found = known
                break
            path.append(current)
            current = current.parent
        for each in reversed(path):
            found = self._step(each, found)
            self._known[each.mem_id] = found
        return found

    def _step(self, node: LexborNode, above: Surroundings) -> Surroundings:
        attributes = node.attributes
        tag = node.tag_id
        if not attributes and tag not in _RELEVANT_TAGS:
            return above
        names = attributes.get("class") or ""
        if identifier := attributes.get("id"):
            names = f"{names} {identifier}"
        named = _named(names[:400]) if names else _NO_NAMES
        elsewhere, tile, hidden, option, struck, remark = named
        remark = remark or attributes.get("itemprop") in _REMARKED
        style = attributes.get("style")
        if named == _NO_NAMES and not (style or remark) and tag not in _RELEVANT_TAGS:
            # most elements change nothing
            return above._replace(hidden=True) if "hidden" in attributes else above
        if node.mem_id in self._central:
            elsewhere = tile = hidden = option = struck = remark = False
        elif tag in _ELSEWHERE_TAGS:
            elsewhere = True
        if "hidden" in attributes or (style and _HIDDEN_STYLE.search(style[:300].lower())):
            hidden = True
        return Surroundings(
            above.elsewhere or elsewhere,
            above.tile or tile,
            above.hidden or hidden,
            above.option or option,
            above.struck
            or struck
            or tag in _STRUCK_TAGS
            or bool(style and "line-through" in style),
            above.linked or (tag == _LINK and len(attributes.get("href") or "") > 2),
            above.remark or remark,
        )


def _ancestors(node: LexborNode) -> list[LexborNode]:
    found: list[LexborNode] = [node]
    parent = node.parent
    while parent is not None and len(found) < _MAX_CLIMB:
        found.append(parent)
        parent = parent.parent
    return found
