"""Search for products by name, number and language."""

from __future__ import annotations

from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.products.filters import Filters
from forager.products.search import search_products
from forager.settings import Settings
from products.catalog import CATALOG, names, product
from products.product_shop import Shop, lamp


async def names_found(
    shop: Shop, words: str, filters: Filters | None = None, **more: Any
) -> list[str]:
    return names((await search_products(shop.database, words, filters, **more)).items)


async def test_search_ranks_names_over_descriptions(shop: Shop) -> None:
    await shop.stock(
        {
            "a": product("Desk", description="It has room for headphones."),
            "b": product("Wireless Headphones"),
            "c": product("Cable", brand="Headphones Inc"),
            "d": product("Sofa"),
        }
    )
    assert await names_found(shop, "headphones") == ["Wireless Headphones", "Cable", "Desk"]
    assert await names_found(shop, "headphone") == ["Wireless Headphones", "Cable", "Desk"]
    assert await names_found(shop, "wireless headphones") == ["Wireless Headphones"]
    assert await names_found(shop, "headphones -wireless") == ["Cable", "Desk"]
    assert await names_found(shop, '"room for headphones" or sofa') == ["Sofa", "Desk"]
    assert await names_found(shop, "headphones", Filters(brand="headphones inc")) == ["Cable"]
    assert await names_found(shop, "nothing of it") == []


async def test_search_by_numbers(shop: Shop) -> None:
    await shop.stock(CATALOG | {"case": product("Case for C-1")})
    assert (await names_found(shop, "c-1"))[0] == "Chair"
    assert await names_found(shop, "4006381333931") == ["Sofa"]
    assert await names_found(shop, "0400 6381 333931") == ["Sofa"]


async def test_every_language_is_searched_by_its_own_rules(
    database: Database, settings: Settings
) -> None:
    german = await Shop(database, settings, host="laden.example", language="de-AT").open()
    await german.visit("haus", product("Das Haus der Lampen"))
    japanese = await Shop(database, settings, host="mise.example", language="ja").open()
    await japanese.visit("lamp", product("lamps ランプ"))
    english = await Shop(database, settings, host="shop.example", language="en").open()
    await english.visit("die", product("Die cast models"))
    assert await names_found(german, "Häuser") == ["Das Haus der Lampen"]
    assert await names_found(german, "lampe") == ["Das Haus der Lampen"]
    assert await names_found(german, "lamps") == ["lamps ランプ"]
    assert await names_found(german, "casting model") == ["Die cast models"]


TYPED_QUERIES = (
    "", "   ", "the", "-", '"', "'; --", "\0", "\ud800", "§english", "!&|()<->:*", "\\", "x" * 99999
)  # fmt: skip


async def test_nothing_that_is_typed_is_an_error(shop: Shop) -> None:
    await shop.stock(CATALOG)
    for words in TYPED_QUERIES:
        assert await names_found(shop, words) == []


async def test_search_continues_after_a_cursor(shop: Shop) -> None:
    await shop.stock({f"p{number}": product(f"Lamp number {number}") for number in range(23)})
    found: list[str] = []
    cursor = None
    while True:
        page = await search_products(shop.database, "lamp", cursor=cursor, limit=5)
        found += names(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(found) == len(set(found)) == 23
    first = await search_products(shop.database, "lamp", limit=5)
    with pytest.raises(InvalidInput, match="another list"):
        await search_products(shop.database, "other", cursor=first.next_cursor)


async def test_search_finds_what_changed(shop: Shop) -> None:
    await shop.visit("lamp", lamp())
    await shop.visit("lamp", lamp(name="Silver Candlestick"))
    assert await names_found(shop, "brass") == ["Silver Candlestick"]
    assert await names_found(shop, "candlesticks") == ["Silver Candlestick"]
    await shop.visit("lamp", lamp(name="Silver Candlestick", description=None))
    assert await names_found(shop, "brass") == []
