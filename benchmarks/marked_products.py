"""Annotated product pages of real shops, and the scores of extracted fields.

Pages are scored as in the published benchmark of this data: a value is correct if it is one of the
annotated values, missing if there is none, and wrong (and also missing) otherwise. A product
without availability counts as in stock, for all compared systems.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.product import Availability, Product
from forager.parsers.registry import parse_product

Reader = Callable[[ProductPage], Product]
Values = dict[str, str | None]

FIELDS = ("price", "currency", "availability", "OutOfStock", "brand", "sku", "gtin")
_GONE = (Availability.OUT_OF_STOCK, Availability.DISCONTINUED)
# possible currencies of the annotated symbols; a dollar may be that of any country
_SYMBOLS = {
    "€": {"EUR"}, "£": {"GBP"}, "ر.س": {"SAR"}, "원": {"KRW"}, "₽": {"RUB"}, "¥": {"JPY", "CNY"},
    "$": {"USD", "CAD", "AUD", "NZD", "MXN", "CLP", "ARS", "COP", "SGD", "HKD", "TWD"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page and the annotated values of its fields."""

    url: str
    html: bytes
    truth: dict[str, set[str]]

    @property
    def shop(self) -> str:
        """The name that the hosts of one shop share in all countries."""
        labels = (urlsplit(self.url).hostname or "").split(".")
        return next(label for label in labels if label not in ("www", "shop"))


@dataclass(slots=True)
class Tally:
    right: int = 0
    wrong: int = 0
    missing: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def support(self) -> int:
        return self.right + self.missing


def tuned_shops(pages: Iterable[MarkedPage]) -> set[str]:
    """Every second shop: only their pages may be used to tune rules and weights."""
    return set(sorted({page.shop for page in pages})[::2])


def read_with_parsers(page: ProductPage) -> Product:
    return parse_product(page).product


def load_pages(folder: Path) -> list[MarkedPage]:
    truth = json.loads((folder / "ground-truth.json").read_bytes())
    return [
        MarkedPage(
            url=marked["url"],
            html=gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()),
            truth={key: set(value) for key, value in marked.items() if key != "url"},
        )
        for name, marked in sorted(truth.items())
    ]


def score(pages: Iterable[MarkedPage], read: Reader) -> dict[str, Tally]:
    tallies = {name: Tally() for name in FIELDS}
    for page in pages:
        product = read(open_page(page.html, page.url, "text/html"))
        found = values_of(product)
        for name, tally in tallies.items():
            _count(tally, name, page, found[name])
    return tallies


def values_of(product: Product) -> Values:
    gone = product.availability in _GONE
    return {
        "price": None if product.price is None else str(product.price),
        "currency": product.currency,
        "availability": "OutOfStock" if gone else "InStock",
        "OutOfStock": "OutOfStock" if gone else None,
        "brand": product.brand,
        "sku": product.sku,
        "gtin": product.gtin,
    }


def _count(tally: Tally, name: str, page: MarkedPage, found: str | None) -> None:
    accepted = page.truth.get(name, set())
    if name == "currency" and not accepted:
        return  # a page without a symbol has a currency, too
    if found is not None and any(_equal(name, found, each) for each in accepted):
        tally.right += 1
        return
    tally.wrong += found is not None
    tally.missing += bool(accepted)
    if found is not None or accepted:
        expected = " or ".join(sorted(accepted)) or "nothing"
        tally.errors.append(f"{page.url[:90]}: {found} instead of {expected}")


def is_right(name: str, page: MarkedPage, product: Product) -> bool:
    found = values_of(product)[name]
    accepted = page.truth.get(name, ())
    return found is not None and any(_equal(name, found, each) for each in accepted)


def _equal(name: str, found: str, accepted: str) -> bool:
    if name == "price":
        return Decimal(found) == Decimal(accepted)
    if name == "currency":
        return found in _SYMBOLS.get(accepted.strip(" ~"), {accepted})
    if name == "gtin":
        return found.lstrip("0") == accepted.lstrip("0")
    if name == "brand":
        return found.strip().casefold() == accepted.strip().casefold()
    return found == accepted


_SCRIPT = re.compile(rb"<script\b.*?</script>", re.DOTALL | re.IGNORECASE)
_LINKED_DATA = re.compile(rb"<script[^>]*ld\+json.*?</script>", re.DOTALL | re.IGNORECASE)
_META = re.compile(rb"<meta\b[^>]*>", re.IGNORECASE)
_ANNOTATION = re.compile(rb"\b(?:item(?:prop|scope|type)|(?:typeof|vocab|property)(?==))")


def without_data(page: MarkedPage, *, drop_scripts: bool) -> MarkedPage:
    """The page without structured data, and optionally without scripts."""
    html = (_SCRIPT if drop_scripts else _LINKED_DATA).sub(b"", page.html)
    return replace(page, html=_ANNOTATION.sub(rb"data-x", _META.sub(b"", html)))
