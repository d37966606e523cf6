"""The writer of products: what a visit changes in every table."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from forager.db.database import Database
from forager.extract.product.product import Availability, Evidence, Product, ProductImage
from forager.products.writer import ParsedPage, touch_unchanged, write_pages
from forager.settings import Settings
from products.product_shop import EVENTS, HISTORY, LAMP, MOMENTS, Shop, lamp


async def test_a_first_visit_makes_a_product(shop: Shop) -> None:
    written = await shop.visit("lamp", LAMP, final_url="https://shop.example/lamps/1")
    assert (written.outcome, written.is_new, written.content_changed) == ("ok", True, False)
    row = await shop.row(
        """
        SELECT product_name, price, list_price, currency, availability, rating, brand, category,
               sku, gtin, evidence, problems, metadata, parser, price_changed_at,
               created_at = updated_at
          FROM products WHERE id = %s
        """,
        written.product_id,
    )
    assert row == (
        "Brass Desk Lamp", Decimal("49.9"), Decimal("59.9"), "EUR", "in_stock", Decimal("4.5"),
        "Lumen & Sons", "Home > Lighting > Desk lamps", "BL-100", "4006381333931",
        {"name": {"confidence": 0.8, "origin": "dom:h1"},
         "price": {"confidence": 0.9, "origin": "json-ld:Product"}},
        [], {}, "generic", None, True,
    )  # fmt: skip
    assert await shop.rows(HISTORY) == [(Decimal("49.9"), Decimal("59.9"), "EUR", "in_stock")]
    [(kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.added"
    assert (payload["name"], payload["price"], payload["currency"]) == (
        "Brass Desk Lamp",
        "49.90",
        "EUR",
    )
    extraction = await shop.row(
        "SELECT product_id, outcome, confidence, fields, segment, role FROM extractions"
    )
    assert extraction[:3] == (written.product_id, "ok", 0.9)
    assert (extraction[3]["price"], extraction[3]["category"][0]) == ("49.90", "Home")
    assert extraction[4:] == ("segment", "active")
    assert await shop.row("SELECT pages, good FROM parse_rates") == (1, 1)


async def test_a_visit_without_changes_moves_last_seen_alone(shop: Shop) -> None:
    await shop.visit("lamp", LAMP)
    before = await shop.row(MOMENTS)
    written = await shop.visit("lamp", replace(LAMP, price=Decimal("49.9")))
    after = await shop.row(MOMENTS)
    assert (written.is_new, written.content_changed, written.price_changed) == (False,) * 3
    assert (after[0], after[1], after[3], after[4]) == (before[0], before[1], before[3], before[4])
    assert after[2] > before[2]
    assert len(await shop.rows(HISTORY)) == len(await shop.rows(EVENTS)) == 1


async def test_a_changed_price_is_written_to_all_tables(shop: Shop) -> None:
    await shop.visit("lamp", lamp("49.90"))
    before = await shop.row(MOMENTS)
    written = await shop.visit("lamp", lamp("39.92"))
    assert (written.content_changed, written.price_changed, written.availability_changed) == (
        True, True, False
    )  # fmt: skip
    after = await shop.row(MOMENTS)
    assert after[1] > before[1]
    assert after[3] == after[1]
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal("49.9"), Decimal("39.92")]
    [_, (kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.price_changed"
    assert {key: payload[key] for key in ("old", "new", "currency", "percent")} == {
        "old": "49.90", "new": "39.92", "currency": "EUR", "percent": -20.0
    }  # fmt: skip


async def test_every_part_of_the_offer_has_its_history(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    changed = await shop.visit("lamp", lamp(list_price=Decimal(60)))
    assert (changed.content_changed, changed.price_changed) == (True, False)
    sold_out = await shop.visit(
        "lamp", lamp(list_price=Decimal(60), availability=Availability.OUT_OF_STOCK)
    )
    assert (sold_out.availability_changed, sold_out.price_changed) == (True, False)
    assert await shop.rows(HISTORY) == [
        (Decimal("49.9"), None, "EUR", "in_stock"),
        (Decimal("49.9"), Decimal(60), "EUR", "in_stock"),
        (Decimal("49.9"), Decimal(60), "EUR", "out_of_stock"),
    ]
    [_, (kind, payload)] = await shop.rows(EVENTS)
    assert kind == "product.availability_changed"
    assert (payload["old"], payload["new"]) == ("in_stock", "out_of_stock")
    assert (await shop.row(MOMENTS))[3] is None


@pytest.mark.parametrize(
    "change", [{"rating": Decimal("4.6")}, {"review_count": 13}, {"name": "Steel Desk Lamp"}]
)
async def test_other_content_moves_updated_at_and_no_history(
    shop: Shop, change: dict[str, Any]
) -> None:
    await shop.visit("lamp", LAMP)
    written = await shop.visit("lamp", replace(LAMP, **change))
    assert (written.content_changed, written.price_changed) == (True, False)
    assert len(await shop.rows(HISTORY)) == len(await shop.rows(EVENTS)) == 1


async def test_evidence_and_images_are_not_content(shop: Shop) -> None:
    await shop.visit("lamp", LAMP)
    image = ProductImage("https://cdn.example/lamp.jpg?v=2")
    seen = replace(LAMP, evidence={"price": Evidence(0.5, "dom:price")}, images=(image,))
    assert not (await shop.visit("lamp", seen, version="2")).content_changed
    row = await shop.row("SELECT evidence->'price'->>'origin', parser_version FROM products")
    assert row == ("dom:price", "2")
    assert await shop.rows("SELECT image_url FROM images") == [(image.url,)]


async def test_other_content_of_a_suspect_visit_is_taken(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    written = await shop.visit("lamp", lamp("4990", name="Golden Desk Lamp"))
    assert (written.outcome, written.content_changed) == ("suspect", True)
    assert await shop.row("SELECT product_name, price FROM products") == (
        "Golden Desk Lamp", Decimal("49.9")
    )  # fmt: skip


async def test_a_domains_currency(database: Database, settings: Settings) -> None:
    shop = await Shop(database, settings).open(currency="EUR")
    first = await shop.visit("lamp", lamp(currency="USD"))
    assert (first.outcome, first.problems[0].rule) == ("suspect", "domain")
    assert await shop.row("SELECT price, currency FROM products") == (None, None)
    second = await shop.visit("lamp", lamp(currency=None))
    assert (second.outcome, second.price_changed) == ("ok", True)
    assert await shop.row("SELECT price, currency FROM products") == (Decimal("49.9"), "EUR")


async def test_incomplete_and_failed_pages_leave_an_extraction_alone(shop: Shop) -> None:
    known = await shop.visit("lamp", lamp())
    nameless = await shop.visit("lamp", lamp(name=None))
    broken = await shop.visit("lamp", None, error="IndexError: \0 list index out of range")
    blocked = await shop.visit("new", Product(name="Robot Check", confidence=0.4))
    assert [w.outcome for w in (nameless, broken, blocked)] == [
        "incomplete",
        "failed",
        "incomplete",
    ]
    assert [w.product_id for w in (nameless, broken, blocked)] == [None, None, None]
    assert nameless.reason == "the page has no name of a product"
    assert broken.reason == "IndexError:  list index out of range"
    assert await shop.rows("SELECT id, product_name FROM products") == [
        (known.product_id, "Brass Desk Lamp")
    ]
    rows = await shop.rows("SELECT outcome, error_message FROM extractions ORDER BY id")
    assert [row[0] for row in rows] == ["ok", "incomplete", "failed", "incomplete"]
    assert "Robot Check" in rows[3][1]
    assert await shop.row("SELECT pages, good FROM parse_rates") == (4, 1)


async def test_a_canary_writes_an_extraction_alone(shop: Shop) -> None:
    active = await shop.page("lamp", lamp())
    await shop.write(active)
    page = await shop.page("lamp", lamp("44"))
    canary = replace(page, product=lamp("4400"), version="2", role="canary")
    first, second = await shop.write(page, canary)
    assert (first.price_changed, second.price_changed) == (True, False)
    assert (first.outcome, second.outcome) == ("ok", "suspect")
    assert second.product_id == first.product_id
    assert await shop.row("SELECT price, parser_version FROM products") == (Decimal(44), "1")
    assert await shop.rows("SELECT role, outcome FROM extractions ORDER BY id DESC LIMIT 1") == [
        ("canary", "suspect")
    ]
    alone = await shop.visit("other", lamp(), role="canary")
    assert (alone.outcome, alone.product_id) == ("ok", None)
    assert len(await shop.rows("SELECT id FROM products")) == 1


async def test_the_last_reading_of_a_url_in_a_batch_counts(shop: Shop) -> None:
    pages = [await shop.page("lamp", lamp(price)) for price in ("10", "20", "30")]
    written = await shop.write(*pages, await shop.page("other", lamp()))
    assert [w.is_new for w in written] == [False, False, True, True]
    assert len({w.product_id for w in written[:3]}) == 1
    assert [row[0] for row in await shop.rows(HISTORY)] == [Decimal(30), Decimal("49.9")]
    assert len(await shop.rows("SELECT id FROM extractions")) == 4


async def test_two_writers_of_one_url_make_one_history(shop: Shop) -> None:
    names = [f"lamp{number}" for number in range(40)]
    up = [await shop.page(name, lamp("20")) for name in names]
    down = [await shop.page(name, lamp("30")) for name in reversed(names)]
    await asyncio.gather(*(shop.write(*pages) for pages in (up, down) * 4))
    rows = await shop.rows("SELECT product_id, price FROM price_history ORDER BY recorded_at, id")
    current = dict(await shop.rows("SELECT id, price FROM products"))
    assert len(current) == 40
    for product_id, price in current.items():
        seen = [row[1] for row in rows if row[0] == product_id]
        assert seen[-1] == price
        assert all(old != new for old, new in pairwise(seen))
    added = await shop.rows("SELECT id FROM catalog_events WHERE kind = 'product.added'")
    assert len(added) == 40


async def test_what_has_not_changed_is_touched(shop: Shop, database: Database) -> None:
    await shop.stock({"lamp": lamp(), "other": lamp()})
    before = dict(await shop.rows("SELECT url, last_seen_at FROM products"))
    task = await shop.task("lamp")
    async with database.transaction() as connection:
        await touch_unchanged(connection, [task, 999_999])
        await touch_unchanged(connection, [])
    after = dict(await shop.rows("SELECT url, last_seen_at FROM products"))
    assert after[shop.url("lamp")] > before[shop.url("lamp")]
    assert after[shop.url("other")] == before[shop.url("other")]
    assert len(await shop.rows(HISTORY)) == 2


class Cancelled(Exception):
    pass


async def write_and_cancel(shop: Shop, page: ParsedPage) -> None:
    async with shop.database.transaction() as connection:
        await write_pages(connection, [page], settings=shop.settings)
        raise Cancelled


async def test_a_product_follows_its_task_to_another_domain(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    other = await Shop(shop.database, shop.settings, host="example").open()
    written = await shop.visit("lamp", lamp(), domain_id=other.domain_id)
    assert not written.content_changed
    assert await shop.row("SELECT domain_id FROM products") == (other.domain_id,)


async def test_nothing_is_written_when_the_transaction_fails(shop: Shop) -> None:
    page = await shop.page("lamp", lamp())
    with pytest.raises(Cancelled):
        await write_and_cancel(shop, page)
    assert await shop.rows("SELECT id FROM products") == []
    assert await shop.rows("SELECT id FROM catalog_events") == []
