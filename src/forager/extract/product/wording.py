# ruff: noqa: RUF001 - shops write in many alphabets, and some letters look alike
"""Texts of a product as they are kept: without markup, in one line where they are names, capped."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Any

from forager.extract.text import collapse, storable

MAX_NAME = 512
MAX_BRAND = 255
MAX_SKU = 100
MAX_DESCRIPTION = 65_536
MAX_CATEGORY = 255
MAX_CATEGORIES = 16
# of a text that may be a name
_MAX_COMPARED = 4_000

# what a template left behind where nobody filled it in
_TEMPLATE = re.compile(r"\{\{|\}\}|<%|\$\{|^\$[A-Za-z]|\[\[|%%")
_TAG = re.compile(r"<[^<>]{0,2000}>")
_NOTHING = frozenset(
    ["", "-", "--", "n/a", "na", "none", "null", "undefined", "nan", "false", "true", "unknown",
     "not applicable", "0", "no brand", "nobrand", "brand", "[object object]"]
)  # fmt: skip


def line_of(value: Any, limit: int) -> str | None:
    """One line of text, or None where the value is no text or says nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)[: limit * 8]
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    text = collapse(storable(text))[:limit].strip()
    return text if text and not _TEMPLATE.search(text) else None


def name_of(value: Any) -> str | None:
    text = line_of(value, MAX_NAME)
    return text if text and text.lower() not in _NOTHING else None


_BRAND_PREFIX = re.compile(
    r"^(?:brand|marke|marque|marca|značka|merk|märke|manufacturer|hersteller|výrobce|výrobca|by|von"
    r"|fabricant|produttore|fabricante|producent|бренд|производитель|ブランド|メーカー|品牌|브랜드"
    r"|العلامة التجارية)\s*[:：]\s*",
    re.IGNORECASE,
)
# links to the shop of a brand inside a larger shop
_BRAND_SHOP = re.compile(
    r"(?:visit the|besuchen sie den|visiter la boutique|visita (?:lo store di|la tienda de)"
    r"|bezoek de"
    r"|zobacz sklep|shop all|view all|see all|more from|mehr von|tous les produits)\s+(.{1,80}?)"
    r"(?:[ -](?:store|shop|winkel|products?|items?))?",
    re.IGNORECASE,
)


def brand_of(value: Any) -> str | None:
    text = line_of(value, MAX_BRAND)
    if not text or text.lower() in _NOTHING or text.startswith(("http://", "https://")):
        return None
    text = _BRAND_PREFIX.sub("", text)
    shop = _BRAND_SHOP.fullmatch(text)
    return (shop[1] if shop else text) or None


_SKU_PREFIX = re.compile(
    r"^(?:sku|mpn|item|product|article|art|model|ref|réf|référence|reference|code|id|no|nr|number)"
    r"[\s.]*(?:code|id|no|nr|number|#)?[\s.]*[:#：]\s*",
    re.IGNORECASE,
)
_SKU = re.compile(r"[\w][\w \-./+#:|_&()*]{0,99}")


def sku_of(value: Any) -> str | None:
    """An identifier: short, with a letter or digit first, and no sentence."""
    text = line_of(value, MAX_SKU + 1)
    if not text or len(text) > MAX_SKU or text.lower() in _NOTHING:
        return None
    text = _SKU_PREFIX.sub("", text).rstrip(" .,;:")
    if not _SKU.fullmatch(text) or text.count(" ") > 5:
        return None
    return text if any(map(str.isalnum, text)) else None


def description_of(value: Any) -> str | None:
    """Text of several lines; markup in it becomes blanks."""
    if not isinstance(value, str):
        return None
    text = value[: MAX_DESCRIPTION * 2]
    if "&lt;" in text or "&amp;" in text:
        text = html.unescape(text)
    text = html.unescape(_TAG.sub(" ", text)) if "<" in text or "&" in text else text
    lines = (collapse(line) for line in storable(text).splitlines())
    return "\n".join(line for line in lines if line)[:MAX_DESCRIPTION] or None


_SEPARATORS = re.compile(r"\s*(?:>|›|»|→|\||&gt;|(?<=\S)\s+/\s+(?=\S))\s*")


def category_of(value: Any) -> tuple[str, ...]:
    """A path of categories, from a list or from a text with separators."""
    if isinstance(value, str):
        value = _SEPARATORS.split(html.unescape(value)[:4000])
    if not isinstance(value, list | tuple):
        return ()
    names = (line_of(each, MAX_CATEGORY) for each in value[: MAX_CATEGORIES * 2])
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_CATEGORIES]


_WORD = re.compile(r"\w+")


def words_in(text: str | None) -> frozenset[str]:
    return _words_in(text[:_MAX_COMPARED]) if text else frozenset()


# the titles of a page are compared with many names
@lru_cache(maxsize=64)
def _words_in(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def alike(one: str | None, other: str | None) -> float:
    """0 to 1: how much of the shorter text's words the longer one has, if they are names at all."""
    first, second = words_in(one), words_in(other)
    if not first or not second:
        return 0.0
    return len(first & second) / min(len(first), len(second))
