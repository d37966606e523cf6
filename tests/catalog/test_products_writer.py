"""The writer of products: what a visit changes in every table, and what it leaves alone."""

from __future__ import annotations

from decimal import Decimal

import pytest

from catalog.product_shop import LAMP, Shop
from forager.db.database import Database
from forager.settings import Settings


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()


async def test_a_first_visit_makes_a_product(shop: Shop) -> None:
    written = await shop.visit("lamp", LAMP)
    assert (written.outcome, written.is_new, written.content_changed) == ("ok", True, False)
    row = await shop.row(
        """
        SELECT product_name, price, list_price, currency, availability, rating, brand, category,
               sku, gtin, evidence, problems, parser, price_changed_at, created_at = updated_at
          FROM products WHERE id = %s
        """,
        written.product_id,
    )
    assert row == (
        "Brass Desk Lamp", Decimal("49.9"), Decimal("59.9"), "EUR", "in_stock", Decimal("4.5"),
        "Lumen & Sons", "Home > Lighting > Desk lamps", "BL-100", "4006381333931",
        {"name": {"confidence": 0.8, "origin": "dom:h1"},
         "price": {"confidence": 0.9, "origin": "json-ld:Product"}},
        [], "generic", None, True,
    )  # fmt: skip
