"""The product of a page: every reader's facts, and a site parser's, merged into one answer."""

from __future__ import annotations

from collections.abc import Iterable

from forager.extract.product.fact import Fact
from forager.extract.product.merge import merge
from forager.extract.product.page import ProductPage
from forager.extract.product.record import Product


def find_facts(page: ProductPage) -> tuple[Fact, ...]:
    """What every place of the page claims about its product."""
    return ()


def extract_product(page: ProductPage, overrides: Iterable[Fact] = ()) -> Product:
    """The merged product; `overrides` are the facts of a site parser, and win field by field."""
    return merge((*find_facts(page), *overrides), page)
