"""Lists of products: filters, orders and cursors."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.product import Availability
from forager.products.filters import Filters, ListPlace, ProductOrder, encode_place
from forager.products.service import list_products
from forager.settings import Settings
from products.catalog import CATALOG, names, product
from products.product_shop import LAMP, Shop


async def listed(shop: Shop, filters: Filters | None = None, **more: Any) -> list[str]:
    return names((await list_products(shop.database, filters, **more)).items)


async def walked(shop: Shop, limit: int, filters: Filters | None = None, **more: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = await list_products(shop.database, filters, cursor=cursor, limit=limit, **more)
        found += names(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


FILTERED: list[tuple[Filters, set[str]]] = [
    (Filters(), {"Chair", "Bar stool", "Sofa", "Lamp", "Rug"}),
    (Filters(min_price=Decimal(60), max_price=Decimal(120)), {"Chair", "Bar stool", "Rug"}),
    (Filters(min_price=Decimal(121)), {"Sofa"}),
    (Filters(currency="eur", max_price=Decimal(60)), {"Bar stool", "Rug"}),
    (Filters(availability=("out_of_stock",)), {"Rug"}),
    (Filters(availability=("out_of_stock", "in_stock"), brand="PINE"), {"Sofa"}),
    (Filters(min_rating=Decimal("4.8")), {"Sofa"}),
    (Filters(brand="Oak"), {"Chair", "Bar stool"}),
    (Filters(category="seating"), {"Chair", "Bar stool"}),
    (Filters(category="Home>Seating > Bar"), {"Bar stool"}),
    (Filters(category="Seat"), set()),
    (Filters(category="Bar > Home"), set()),
    (Filters(domain="SHOP.example"), {"Chair", "Bar stool", "Sofa", "Lamp", "Rug"}),
    (Filters(sku="c-1"), {"Chair"}),
    (Filters(sku="C-"), set()),
    (Filters(gtin="04006381333931"), {"Sofa"}),
    (Filters(has_problems=True), set()),
    (Filters(has_problems=False, brand="Pine"), {"Sofa"}),
    (Filters(brand="'; DROP TABLE products; --"), set()),
    (Filters(brand="\0\ud800" * 5000), set()),
]


async def test_a_domain_means_its_subdomains(database: Database, settings: Settings) -> None:
    for host in ("www.shop.example", "m.shop.example", "myshop.example"):
        await (await Shop(database, settings, host).open()).visit("lamp", LAMP)
    found = await list_products(
        database, Filters(domain="shop.example"), order=ProductOrder.CHEAPEST
    )
    assert {product.domain for product in found.items} == {"www.shop.example", "m.shop.example"}
    page = await list_products(database, Filters(domain="shop.example"), limit=1)
    # a host that turns up meanwhile does not end the list
    await (await Shop(database, settings, "new.shop.example").open()).visit("lamp", LAMP)
    rest = await list_products(database, Filters(domain="shop.example"), cursor=page.next_cursor)
    assert len(rest.items) == 1


async def test_filters(shop: Shop) -> None:
    await shop.stock(CATALOG)
    for filters, expected in FILTERED:
        assert set(await listed(shop, filters)) == expected, filters


async def test_changed_since_and_problems(shop: Shop) -> None:
    await shop.stock(CATALOG)
    [(moment,)] = await shop.rows("SELECT clock_timestamp()")
    assert await listed(shop, Filters(changed_since=moment)) == []
    await shop.visit("sofa", replace(CATALOG["sofa"], price=Decimal(800)))
    await shop.visit("chair", replace(CATALOG["chair"], price=Decimal(12000)))
    assert await listed(shop, Filters(changed_since=moment)) == ["Sofa"]
    assert await listed(shop, Filters(has_problems=True)) == ["Chair"]


ORDERED = {
    ProductOrder.NEWEST: ["Rug", "Lamp", "Sofa", "Bar stool", "Chair"],
    ProductOrder.UPDATED: ["Chair", "Rug", "Lamp", "Sofa", "Bar stool"],
    ProductOrder.NAME: ["Bar stool", "Chair", "Lamp", "Rug", "Sofa"],
    ProductOrder.CHEAPEST: ["Bar stool", "Rug", "Chair", "Sofa", "Lamp"],
    ProductOrder.DEAREST: ["Sofa", "Chair", "Rug", "Bar stool", "Lamp"],
    # none has changed; Lamp has no price
    ProductOrder.DROPS: ["Chair", "Bar stool", "Sofa", "Rug", "Lamp"],
    ProductOrder.RISES: ["Rug", "Sofa", "Bar stool", "Chair", "Lamp"],
}


async def test_orders(shop: Shop) -> None:
    for name, made in CATALOG.items():
        await shop.visit(name, made)
    await shop.visit("chair", replace(CATALOG["chair"], review_count=3))
    for order in ProductOrder:
        for limit in (1, 2, 5):
            assert await walked(shop, limit, order=order) == ORDERED[order]


async def test_products_sort_by_their_last_price_change(shop: Shop) -> None:
    visits = (
        {"rise": product("Rise", "10"), "fall": product("Fall", "10"), "dip": product("Dip", "10")},
        {"same": product("Same", "10"), "bare": product("Bare", None)},
        {"rise": product("Rise", "11"), "fall": product("Fall", "8")},
        {"dip": product("Dip", "9")},
        # another stock is no change of the price
        {"fall": replace(product("Fall", "8"), availability=Availability.OUT_OF_STOCK)},
    )
    for visit in visits:
        await shop.stock(visit)
    drops = ["Fall", "Dip", "Same", "Rise", "Bare"]
    for limit in (1, 2, 5):
        assert await walked(shop, limit, order=ProductOrder.DROPS) == drops
        assert await walked(shop, limit, order=ProductOrder.RISES) == [*drops[-2::-1], "Bare"]
    found = (await list_products(shop.database, order=ProductOrder.DROPS)).items
    assert [each.price_change for each in found] == [-20, -10, None, 10, None]


async def test_no_row_is_lost_or_twice_while_others_are_added(shop: Shop) -> None:
    await shop.stock({f"p{number}": product(f"P{number}") for number in range(25)})
    found: list[str] = []
    cursor = None
    while True:
        page = await list_products(shop.database, cursor=cursor, limit=4)
        found += names(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
        await shop.visit(f"new{len(found)}", product(f"New {len(found)}"))
    assert sorted(found) == sorted(f"P{number}" for number in range(25))


@pytest.mark.parametrize("order", [ProductOrder.CHEAPEST, ProductOrder.NAME])
async def test_other_orders_lose_nothing_either(shop: Shop, order: ProductOrder) -> None:
    unpriced = {f"u{number}": product("Same", None) for number in range(7)}
    await shop.stock({f"p{number}": product("Same") for number in range(7)} | unpriced)
    page = await list_products(shop.database, order=order, limit=3)
    await shop.visit("late", product("Aaa", "0.5"))
    seen = {found.id for found in page.items}
    while page.next_cursor is not None:
        page = await list_products(shop.database, order=order, limit=3, cursor=page.next_cursor)
        assert not seen & {found.id for found in page.items}
        seen |= {found.id for found in page.items}
    assert len(seen) == 14


async def test_a_list_says_what_is_wrong_with_its_question(shop: Shop) -> None:
    await shop.stock(CATALOG)
    page = await list_products(shop.database, limit=2)
    assert page.next_cursor is not None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cursor": "nonsense"}, "not one that a list gave"),
        ({"cursor": "é" * 5}, "not one that a list gave"),
        ({"cursor": "a" * 100_000}, "not one that a list gave"),
        ({"cursor": page.next_cursor, "order": ProductOrder.NAME}, "another list"),
        ({"cursor": page.next_cursor, "filters": Filters(brand="x")}, "another list"),
        ({"limit": 0}, "1 to 1000"),
        ({"limit": 1001}, "1 to 1000"),
        ({"filters": Filters(min_price=Decimal(2), max_price=Decimal(1))}, "from 2 to 1"),
        ({"filters": Filters(min_price=Decimal("NaN"))}, "min price"),
        ({"filters": Filters(availability=("soon",))}, "'soon' is not an availability"),
        ({"filters": Filters(gtin="123")}, "not a GTIN"),
        ({"filters": Filters(domain="not a host")}, "not a host"),
    ]  # fmt: skip
    for question, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            await list_products(shop.database, **question)
    with pytest.raises(NotFound, match=r"no domain other\.example"):
        await list_products(shop.database, Filters(domain="other.example"))


FORGED = (
    datetime.max.replace(tzinfo=UTC), datetime.now(UTC).replace(tzinfo=None), Decimal("1e9"), "x\0",
    "x", 1.5, None,
)  # fmt: skip


async def test_a_forged_cursor_does_no_harm(shop: Shop) -> None:
    await shop.stock(CATALOG)
    for order, value in itertools.product(ProductOrder, FORGED):
        forged = encode_place(ListPlace(value, 1), Filters(), order)
        with contextlib.suppress(InvalidInput):
            page = await list_products(shop.database, order=order, cursor=forged)
            assert len(page.items) <= len(CATALOG)
    assert len((await list_products(shop.database)).items) == len(CATALOG)
