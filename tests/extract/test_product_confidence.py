"""Confidences that are shown are probabilities, fitted to scores."""

from __future__ import annotations

import pytest

from forager.extract.product.extract import find_facts
from forager.extract.product.merge import calibrated, merge
from forager.extract.product.page import open_page

PAGE = open_page(
    b"""<title>Lamp</title><h1>Lamp</h1><p class=price>12.00 EUR</p>
    <script type="application/ld+json">{"@type": "Product", "name": "Lamp", "sku": "AC-1",
    "brand": "Acme", "offers": {"price": "12.00", "priceCurrency": "EUR"}}</script>""",
    "https://shop.example/item/1",
)


@pytest.mark.parametrize("field", ["price", "currency", "availability", "sku"])
def test_a_higher_score_is_a_higher_probability(field: str) -> None:
    found = [calibrated(field, score / 100) for score in range(101)]
    assert found == sorted(found)
    assert 0 <= found[0] < 0.5 < found[90] <= found[-1] <= 0.99


def test_fields_without_enough_pages_keep_their_scores() -> None:
    assert calibrated("brand", 0.62) == 0.62


def test_only_what_is_shown_is_calibrated() -> None:
    scores, shown = merge(find_facts(PAGE), PAGE, calibrate=False), merge(find_facts(PAGE), PAGE)
    assert shown.confidence == scores.confidence
    assert shown.evidence["brand"] == scores.evidence["brand"]
    price = scores.evidence["price"].confidence
    assert shown.evidence["price"].confidence == round(calibrated("price", price), 3)
