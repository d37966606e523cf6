"""Looking at products: lists, search, one in full, its history, and files of them all."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from forager.amounts import amount_text
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.record import Availability, Product, ProductImage
from forager.products import export
from forager.products.export import (
    Export,
    ExportContent,
    ExportFormat,
    export_products,
    export_size,
)
from forager.products.filters import Filters, Order, Place, encode_place
from forager.products.price_history import price_history
from forager.products.record import ListedProduct
from forager.products.search import search_products
from forager.products.service import list_products, product_stats, show_product
from forager.settings import Settings
from products.product_shop import LAMP, Shop, lamp


@pytest.fixture
async def shop(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings).open()


def product(name: str, price: str | None = "10", **more: Any) -> Product:
    return Product(
        name=name,
        price=None if price is None else Decimal(price),
        currency=None if price is None else "EUR",
        availability=Availability.IN_STOCK,
        confidence=0.9,
        **more,
    )


CATALOGUE = {
    "chair": product("Chair", "120", brand="Oak", category=("Home", "Seating"), sku="C-1"),
    "stool": product("Bar stool", "60", brand="oak", category=("Home", "Seating", "Bar")),
    "sofa": product("Sofa", "900", brand="Pine", rating=Decimal("4.8"), gtin="4006381333931"),
    "lamp": product("Lamp", None, rating=Decimal("3")),
    "rug": replace(product("Rug", "60"), availability=Availability.OUT_OF_STOCK),
}


def names(products: Sequence[ListedProduct]) -> list[str]:
    return [found.name for found in products]


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
    found = await list_products(database, Filters(domain="shop.example"), order=Order.CHEAPEST)
    assert {product.domain for product in found.items} == {"www.shop.example", "m.shop.example"}
    page = await list_products(database, Filters(domain="shop.example"), limit=1)
    # a host that turns up meanwhile does not end the list
    await (await Shop(database, settings, "new.shop.example").open()).visit("lamp", LAMP)
    rest = await list_products(database, Filters(domain="shop.example"), cursor=page.next_cursor)
    assert len(rest.items) == 1


async def test_filters(shop: Shop) -> None:
    await shop.stock(CATALOGUE)
    for filters, expected in FILTERED:
        assert set(await listed(shop, filters)) == expected, filters


async def test_changed_since_and_problems(shop: Shop) -> None:
    await shop.stock(CATALOGUE)
    [(moment,)] = await shop.rows("SELECT clock_timestamp()")
    assert await listed(shop, Filters(changed_since=moment)) == []
    await shop.visit("sofa", replace(CATALOGUE["sofa"], price=Decimal(800)))
    await shop.visit("chair", replace(CATALOGUE["chair"], price=Decimal(12000)))
    assert await listed(shop, Filters(changed_since=moment)) == ["Sofa"]
    assert await listed(shop, Filters(has_problems=True)) == ["Chair"]


ORDERED = {
    Order.NEWEST: ["Rug", "Lamp", "Sofa", "Bar stool", "Chair"],
    Order.UPDATED: ["Chair", "Rug", "Lamp", "Sofa", "Bar stool"],
    Order.NAME: ["Bar stool", "Chair", "Lamp", "Rug", "Sofa"],
    Order.CHEAPEST: ["Bar stool", "Rug", "Chair", "Sofa", "Lamp"],
    Order.DEAREST: ["Sofa", "Chair", "Rug", "Bar stool", "Lamp"],
}


async def test_orders(shop: Shop) -> None:
    for name, made in CATALOGUE.items():
        await shop.visit(name, made)
    await shop.visit("chair", replace(CATALOGUE["chair"], review_count=3))
    for order in Order:
        for limit in (1, 2, 5):
            assert await walked(shop, limit, order=order) == ORDERED[order]


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


@pytest.mark.parametrize("order", [Order.CHEAPEST, Order.NAME])
async def test_other_orders_lose_nothing_either(shop: Shop, order: Order) -> None:
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
    await shop.stock(CATALOGUE)
    page = await list_products(shop.database, limit=2)
    assert page.next_cursor is not None
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"cursor": "nonsense"}, "not one that a list gave"),
        ({"cursor": "é" * 5}, "not one that a list gave"),
        ({"cursor": "a" * 100_000}, "not one that a list gave"),
        ({"cursor": page.next_cursor, "order": Order.NAME}, "another list"),
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
    await shop.stock(CATALOGUE)
    for order, value in itertools.product(Order, FORGED):
        forged = encode_place(Place(value, 1), Filters(), order)
        with contextlib.suppress(InvalidInput):
            page = await list_products(shop.database, order=order, cursor=forged)
            assert len(page.items) <= len(CATALOGUE)
    assert len((await list_products(shop.database)).items) == len(CATALOGUE)


# --- search ----------------------------------------------------------------------------------


async def searched(
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
    assert await searched(shop, "headphones") == ["Wireless Headphones", "Cable", "Desk"]
    assert await searched(shop, "headphone") == ["Wireless Headphones", "Cable", "Desk"]
    assert await searched(shop, "wireless headphones") == ["Wireless Headphones"]
    assert await searched(shop, "headphones -wireless") == ["Cable", "Desk"]
    assert await searched(shop, '"room for headphones" or sofa') == ["Sofa", "Desk"]
    assert await searched(shop, "headphones", Filters(brand="headphones inc")) == ["Cable"]
    assert await searched(shop, "nothing of it") == []


async def test_search_by_numbers(shop: Shop) -> None:
    await shop.stock(CATALOGUE | {"case": product("Case for C-1")})
    assert (await searched(shop, "c-1"))[0] == "Chair"
    assert await searched(shop, "4006381333931") == ["Sofa"]
    assert await searched(shop, "0400 6381 333931") == ["Sofa"]


async def test_every_language_is_searched_by_its_own_rules(
    database: Database, settings: Settings
) -> None:
    german = await Shop(database, settings, host="laden.example", language="de-AT").open()
    await german.visit("haus", product("Das Haus der Lampen"))
    japanese = await Shop(database, settings, host="mise.example", language="ja").open()
    await japanese.visit("lamp", product("lamps ランプ"))
    english = await Shop(database, settings, host="shop.example", language="en").open()
    await english.visit("die", product("Die cast models"))
    assert await searched(german, "Häuser") == ["Das Haus der Lampen"]
    assert await searched(german, "lampe") == ["Das Haus der Lampen"]
    assert await searched(german, "lamps") == ["lamps ランプ"]
    assert await searched(german, "casting model") == ["Die cast models"]


TYPED = (
    "", "   ", "the", "-", '"', "'; --", "\0", "\ud800", "§english", "!&|()<->:*", "\\", "x" * 99999
)  # fmt: skip


async def test_nothing_that_is_typed_is_an_error(shop: Shop) -> None:
    await shop.stock(CATALOGUE)
    for words in TYPED:
        assert await searched(shop, words) == []


async def test_search_goes_on_where_it_ended(shop: Shop) -> None:
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
    assert await searched(shop, "brass") == ["Silver Candlestick"]
    assert await searched(shop, "candlesticks") == ["Silver Candlestick"]
    await shop.visit("lamp", lamp(name="Silver Candlestick", description=None))
    assert await searched(shop, "brass") == []


# --- one product -----------------------------------------------------------------------------


async def test_a_product_in_full(shop: Shop) -> None:
    image = ProductImage("https://shop.example/lamp.jpg", "A lamp")
    written = await shop.visit("lamp", replace(LAMP, images=(image,)))
    await shop.visit("lamp", lamp("4990"))
    for which in (str(written.product_id), shop.url("lamp"), "HTTPS://SHOP.example/lamp#top"):
        details = await show_product(shop.database, which)
        assert details.product.id == written.product_id
    shown = details.product
    assert (shown.name, shown.domain, shown.price) == (LAMP.name, shop.host, Decimal("49.9"))
    assert shown.evidence["price"]["origin"] == "json-ld:Product"
    assert shown.problems[0]["rule"] == "step"
    assert (shown.task_status, shown.task_id) == ("pending", await shop.task("lamp"))
    assert shown.next_crawl_at is not None
    assert [found.outcome for found in details.extractions] == ["suspect", "ok"]
    assert (details.history.changes, details.history.lowest) == (1, Decimal("49.9"))


async def test_what_is_not_there(shop: Shop) -> None:
    await shop.task("waiting")
    with pytest.raises(NotFound, match="its task is pending"):
        await show_product(shop.database, shop.url("waiting"))
    for which in ("17", "9" * 30, "https://shop.example/other"):
        with pytest.raises(NotFound, match="there is no product"):
            await show_product(shop.database, which)
    for which in ("", "javascript:1", "\0", "what?"):
        with pytest.raises(InvalidInput):
            await show_product(shop.database, which)


async def test_history(shop: Shop) -> None:
    written = await shop.visit("lamp", lamp("40"))
    await shop.visit("lamp", lamp("50"))
    await shop.visit("lamp", lamp("50", availability=Availability.OUT_OF_STOCK))
    await shop.visit("lamp", lamp("45"))
    await shop.visit("lamp", lamp("45", currency="USD"))
    await shop.visit("lamp", lamp("45", currency="USD"))
    page = await price_history(shop.database, str(written.product_id))
    changes = [(entry.price, entry.currency, entry.percent) for entry in page.items]
    assert changes == [
        (Decimal(45), "USD", None),
        (Decimal(45), "EUR", -10.0),
        (Decimal(50), "EUR", 0.0),
        (Decimal(50), "EUR", 25.0),
        (Decimal(40), "EUR", None),
    ]
    first = await price_history(shop.database, shop.url("lamp"), limit=3)
    rest = await price_history(shop.database, shop.url("lamp"), limit=3, cursor=first.next_cursor)
    assert [*first.items, *rest.items] == page.items
    assert rest.next_cursor is None
    later = page.items[0].recorded_at
    assert len((await price_history(shop.database, shop.url("lamp"), since=later)).items) == 1
    with pytest.raises(NotFound):
        await price_history(shop.database, "99")


async def test_stats(shop: Shop) -> None:
    await shop.stock(CATALOGUE)
    await shop.visit("sofa", replace(CATALOGUE["sofa"], price=Decimal(9001)))
    stats = await product_stats(shop.database)
    assert (stats.counts.products, stats.counts.priced, stats.counts.with_problems) == (5, 4, 1)
    assert stats.availability == [("in_stock", 4), ("out_of_stock", 1)]
    assert stats.problems == [("price", "step", 1)]
    assert stats.largest_domains == [(shop.host, 5)]


# --- files -----------------------------------------------------------------------------------

ODD = product('=HYPERLINK("x"), "quoted"\nnext line; ü', "1234.5", brand="a,b")


async def exported(shop: Shop, format_: ExportFormat, **more: Any) -> bytes:
    file = io.BytesIO()
    count = await export_products(shop.database, Export(format_, **more), file)
    assert count == more.get("expected", count)
    return file.getvalue()


@pytest.mark.parametrize("chunk", [2, 1000])
async def test_files_are_read_back(shop: Shop, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CHUNK", chunk)
    for name, made in (CATALOGUE | {"odd": ODD}).items():
        await shop.visit(name, made)
    odd = '=HYPERLINK("x"), "quoted" next line; ü'
    lines = (await exported(shop, ExportFormat.JSONL)).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["name"] for row in rows] == ["Chair", "Bar stool", "Sofa", "Lamp", "Rug", odd]
    assert (rows[5]["price"], rows[3]["price"], rows[0]["price"]) == ("1234.50", None, "120")

    text = (await exported(shop, ExportFormat.CSV)).decode()
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["name"] for row in table] == [row["name"] for row in rows]
    assert (table[5]["price"], table[3]["price"], table[5]["brand"]) == ("1234.50", "", "a,b")

    binary = await exported(shop, ExportFormat.PARQUET)
    parquet = pyarrow.parquet.read_table(io.BytesIO(binary)).to_pylist()
    assert [row["name"] for row in parquet] == [row["name"] for row in rows]
    assert (parquet[5]["price"], parquet[3]["price"]) == (Decimal("1234.5"), None)
    assert parquet[0]["created_at"].isoformat().replace("+00:00", "Z") == rows[0]["created_at"]


async def test_files_of_histories_and_of_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "SMALL_CHUNK", 1)
    for format_ in ExportFormat:
        assert isinstance(await exported(shop, format_), bytes)
    await shop.stock(CATALOGUE)
    await shop.visit("sofa", replace(CATALOGUE["sofa"], price=Decimal(450)))
    filters = Filters(brand="Pine")
    rows = [
        json.loads(line)
        for line in (
            await exported(shop, ExportFormat.JSONL, content=ExportContent.HISTORY, filters=filters)
        ).splitlines()
    ]
    assert [(row["price"], row["percent"]) for row in rows] == [("900", None), ("450", -50.0)]
    text = (await exported(shop, ExportFormat.CSV, content=ExportContent.HISTORY)).decode()
    assert len(list(csv.DictReader(io.StringIO(text, newline="")))) == 6
    since = datetime.now(UTC) + timedelta(days=1)
    later = await exported(shop, ExportFormat.JSONL, content=ExportContent.HISTORY, since=since)
    assert later == b""
    binary = await exported(shop, ExportFormat.PARQUET, content=ExportContent.HISTORY)
    assert pyarrow.parquet.read_table(io.BytesIO(binary)).num_rows == 6
    assert await export_size(shop.database, Export(ExportFormat.CSV, filters)) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [("49.9000", "49.90"), ("5.0000", "5"), ("0.0050", "0.005"), ("1E+2", "100"), ("7", "7")],
)
def test_amounts_are_short_and_exact(value: str, text: str) -> None:
    assert amount_text(Decimal(value)) == text
