"""Identifiers that a page's own address holds: many shops name their products by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

from forager.extract.product.fact import Fact, FieldName
from forager.extract.product.page import ProductPage

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
    """Codes of the address, surer where the page's own data repeats them as values."""
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
