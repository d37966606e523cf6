"""Many claims, one product: for each field the value that the page supports best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from forager.extract.product.fact import Fact
from forager.extract.product.page import ProductPage
from forager.extract.product.record import Evidence, Product


def merge(facts: Iterable[Fact], page: ProductPage) -> Product:  # noqa: ARG001
    """The product that the facts of one page describe, with the evidence for every field."""
    best: dict[str, Fact] = {}
    for fact in facts:
        if fact.field not in best or best[fact.field].confidence < fact.confidence:
            best[fact.field] = fact
    evidence = {name: Evidence(fact.confidence, fact.origin) for name, fact in best.items()}
    values = {str(name): fact.value for name, fact in best.items()}
    return replace(Product(evidence=evidence), **values)
