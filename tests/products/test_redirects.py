"""Redirects: one product for each page, and the old URLs lead to it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from forager.db.database import Database
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert
from forager.products.service import show_product
from products.product_shop import Shop, lamp


async def urls(shop: Shop) -> list[str]:
    rows = await shop.rows("SELECT url FROM products ORDER BY id")
    return [url.removeprefix("https://shop.example/") for (url,) in rows]


async def prices(shop: Shop) -> list[Decimal]:
    return [row[0] for row in await shop.rows("SELECT price FROM price_history ORDER BY id")]


async def test_two_urls_of_one_page_are_one_product(shop: Shop) -> None:
    first = await shop.visit("old", lamp("50"), final_url=shop.url("new"))
    second = await shop.visit("new", lamp("49"))
    third = await shop.visit("old", lamp("49"), final_url=shop.url("new"))
    assert first.product_id == second.product_id == third.product_id
    assert await urls(shop) == ["new"]
    assert await prices(shop) == [50, 49]
    for url in (shop.url("old"), shop.url("new")):
        shown = await show_product(shop.database, url)
        assert (shown.product.id, shown.aliases) == (first.product_id, [shop.url("old")])


async def test_a_product_that_moves_keeps_its_history(shop: Shop) -> None:
    await shop.visit("old", lamp("50"))
    await shop.visit("old", lamp("40"), final_url="https://www.shop.example/new")
    assert await urls(shop) == ["https://www.shop.example/new"]
    assert await prices(shop) == [50, 40]
    # its name and number may change there, and it may move again
    other = lamp("40", name="Lamp of Brass", sku="BL-200", gtin=None)
    await shop.visit("old", other, final_url="https://www.shop.example/new")
    await shop.visit("old", other, final_url=shop.url("newer"))
    assert await urls(shop) == ["newer"]
    aliases = (await show_product(shop.database, shop.url("newer"))).aliases
    assert aliases == [shop.url("old"), "https://www.shop.example/new"]


async def test_products_that_become_one_are_merged(shop: Shop, database: Database) -> None:
    old = await shop.visit("old", lamp("60"))
    rule = NewAlert(AlertKind.BACK_IN_STOCK, product=str(old.product_id))
    await add_alert(database, rule)
    await shop.visit("new", lamp("50"))
    written = await shop.visit("old", lamp("50"), final_url=shop.url("new"))
    assert await urls(shop) == ["new"]
    assert await prices(shop) == [60, 50]
    assert await shop.rows("SELECT product_id FROM alert_rules") == [(written.product_id,)]


async def test_several_moves_to_one_page_in_one_batch(shop: Shop) -> None:
    for name in ("a", "b"):
        await shop.visit(name, lamp("50"))
    pages = [await shop.page(n, lamp("40"), final_url=shop.url("c")) for n in ("a", "b", "d")]
    answers = await shop.write(*pages, await shop.page("c", lamp("40")))
    assert len({answer.product_id for answer in answers}) == 1
    assert await urls(shop) == ["c"]
    assert len(await shop.rows("SELECT url FROM product_aliases")) == 3


async def test_a_redirect_to_another_product_or_shop_is_no_move(shop: Shop) -> None:
    await shop.visit("old", lamp("50"))
    front = lamp("9", name="Sale!", sku=None, gtin=None)
    await shop.visit("old", front, final_url=shop.url("sale"))
    await shop.visit("old", lamp("50"), final_url="https://other.example/lamp")
    assert await urls(shop) == ["old"]
    assert await shop.rows("SELECT url FROM product_aliases") == []


async def test_a_url_that_redirects_no_longer_has_its_own_product(shop: Shop) -> None:
    await shop.visit("old", lamp("50"), final_url=shop.url("new"))
    await shop.visit("old", lamp("30", name="Another lamp"))
    assert await urls(shop) == ["new", "old"]
    assert (await show_product(shop.database, shop.url("old"))).product.name == "Another lamp"
    assert await shop.rows("SELECT url FROM product_aliases") == []


async def test_urls_with_one_canonical_url_are_one_product(shop: Shop) -> None:
    first = await shop.visit("sale/lamp?ref=7", lamp("50"), canonical=shop.url("lamp"))
    second = await shop.visit("lamp", lamp("50"))
    third = await shop.visit("lamp?utm=a", lamp("50"), canonical=shop.url("lamp"))
    assert first.product_id == second.product_id == third.product_id
    # an alias follows the price of its product
    await shop.visit("lamp?utm=a", lamp("45"), canonical=shop.url("lamp"))
    assert await urls(shop) == ["lamp"]
    assert await prices(shop) == [50, 45]
    aliases = (await show_product(shop.database, shop.url("lamp?utm=a"))).aliases
    assert aliases == [shop.url("lamp?utm=a"), shop.url("sale/lamp?ref=7")]


async def test_variants_with_one_canonical_url_stay_apart(shop: Shop) -> None:
    red = lamp("50", sku="L", gtin="4006381333931")
    blue = lamp("60", sku="L", gtin="5901234123457")
    pages = [
        await shop.page(f"lamp?color={n}", each, canonical=shop.url("lamp"))
        for n, each in enumerate((red, blue))
    ]
    for _ in range(2):
        await shop.write(*pages)
    assert await urls(shop) == ["lamp", "lamp?color=1"]
    assert await prices(shop) == [50, 60]
    # what an alias shows becomes another product
    await shop.visit("lamp?color=0", blue, canonical=shop.url("lamp"))
    assert await urls(shop) == ["lamp", "lamp?color=1", "lamp?color=0"]


async def test_the_same_sku_at_one_canonical_url_may_be_a_variant(shop: Shop) -> None:
    for color in ("red", "blue"):
        await shop.visit(f"lamp?color={color}", lamp("50", gtin=None), canonical=shop.url("lamp"))
    assert await urls(shop) == ["lamp?color=red", "lamp?color=blue"]


async def test_a_redirect_to_a_product_that_names_itself_is_no_move(shop: Shop) -> None:
    await shop.visit("chair", lamp("50", name="Chair", sku="C-1", gtin=None))
    desk = lamp("50", name="Desk", sku="D-1")
    await shop.visit("desk", desk)
    await shop.visit("chair", desk, final_url=shop.url("desk"), canonical=shop.url("desk"))
    assert await urls(shop) == ["chair", "desk"]


@pytest.mark.parametrize(
    "canonical",
    ["https://shop.example/", "https://shop.example/lamps/", "https://other.example/lamp"],
)
async def test_canonical_urls_of_other_pages_are_ignored(shop: Shop, canonical: str) -> None:
    await shop.visit("lamp", lamp("50"), canonical=canonical)
    unnamed = lamp("50", sku=None, gtin=None)
    await shop.visit("vase?ref=1", unnamed, canonical=shop.url("vase"))
    assert await urls(shop) == ["lamp", "vase?ref=1"]
