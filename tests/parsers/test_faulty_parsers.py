"""Parsers that raise or hang: fields keep their known values, and other shops do not wait."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from forager.db.database import Database
from forager.parsers import registry
from forager.parsers.breakers import ParserBreakers
from forager.parsers.page_cache import CachedPage
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.reading import ReadingPool
from forager.settings import Settings
from products.product_shop import Shop, lamp

MODULE = str(Path(__file__).with_name("faulty_parsers.py"))
DATA = """<html lang="en"><head><title>Lamp</title><script type="application/ld+json">
{"@type": "Product", "name": "Lamp", "sku": "L-1", "offers": {"price": "120.00",
"priceCurrency": "EUR"}}</script></head><body><h1>Lamp</h1>%s</body></html>"""


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()


@pytest.fixture(autouse=True)
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_modules", (MODULE,))


def page(parser: str, more: str, number: int = 1) -> CachedPage:
    url = f"https://shop.example/{parser}/{number}"
    return CachedPage(url, "text/html; charset=utf-8", (DATA % more).encode())


async def test_a_field_that_raises_is_withheld_and_not_read_generically(settings: Settings) -> None:
    async with ReadingPool(settings) as pool:
        good = await pool.parse(page("raising", "<p data-net='100.00'></p>"), {})
        assert good.product is not None
        assert (good.product.price, good.withheld) == (Decimal(100), ())
        bad = await pool.parse(page("raising", ""), {})
    assert bad.product is not None
    assert (bad.product.price, bad.product.currency, bad.product.name) == (None, None, "Lamp")
    assert bad.withheld == ("price",)
    [problem] = bad.problems
    assert "InvalidOperation" in problem.message
    assert "faulty_parsers.py" in (problem.stack_trace or "")


async def test_a_withheld_field_keeps_its_known_value(shop: Shop) -> None:
    known = {"brand": "Lumen", "rating": Decimal(4)}
    await shop.visit("lamp", lamp("50", **known), parser="raising")
    unread = lamp(None, currency=None, availability=None, brand="wrong", rating=None)
    fields = ("price", "brand", "rating", "availability")
    for _ in range(3):
        written = await shop.visit("lamp", unread, parser="raising", withheld=fields)
        assert not written.content_changed
    row = await shop.row("SELECT price, currency, availability, brand, rating FROM products")
    assert row == (50, "EUR", "in_stock", "Lumen", 4)
    assert len(await shop.rows("SELECT FROM price_history")) == 1


async def test_exceptions_in_fields_open_the_breaker_and_the_price_stays_withheld(
    database: Database, settings: Settings
) -> None:
    hurried = settings.model_copy(update={"parser_bypass_after": 3})
    async with ReadingPool(hurried) as pool:
        readers = ParserBreakers(database, hurried, pool)
        read = [await readers.read(page("raising", ""), {}) for _ in range(4)]
    assert [each.parser for each in read] == ["raising"] * 3 + [GENERIC_NAME]
    for each in read:
        assert each.product is not None
        assert (each.product.price, each.withheld) == (None, ("price",))


async def test_a_parser_that_hangs_is_bypassed_after_two_pages_and_delays_no_other_shop(
    database: Database, settings: Settings
) -> None:
    hurried = settings.model_copy(update={"parser_time_limit": 0.3, "extraction_processes": 1})
    hung = [page("hanging", "<p data-hang='yes'></p>", number) for number in range(20)]
    async with ReadingPool(hurried) as pool:
        readers = ParserBreakers(database, hurried, pool)
        started = [asyncio.create_task(readers.read(each, {})) for each in hung]
        other = await readers.read(page("other", ""), {})
        assert other.product is not None
        assert other.product.price == 120
        read = await asyncio.gather(*started)
    by_parser = {each.parser for each in read}
    assert GENERIC_NAME in by_parser
    failed = [each for each in read if each.product is None]
    # at most those that a process had received before the breaker opened
    assert len(failed) < 10
    for each in read:
        assert each.product is None or each.product.price is None


async def test_another_reading_of_a_new_parser_version_is_no_price_change(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    await shop.visit("lamp", lamp("40"), version="2")
    await shop.visit("lamp", lamp("30"), version="2")
    rows = await shop.rows("SELECT kind, payload FROM catalog_events ORDER BY id")
    assert [kind for kind, _ in rows] == [
        "product.added", "product.reread", "product.price_changed",
    ]  # fmt: skip
    reread = rows[1][1]
    assert (reread["parser"], reread["version"], reread["old_parser"]) == (
        "generic", "2", "generic 1",
    )  # fmt: skip
