"""Offers of the same article in several shops, and the largest price changes."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.extract.product.product import Availability, Product, Variant
from forager.products.export import (
    ExportContent,
    ProductExport,
    ProductsExportFormat,
    export_products,
)
from forager.products.filters import Filters, PriceDirection, PriceMeasure
from forager.products.offers import compare_offers
from forager.products.price_history import largest_changes, price_history
from forager.settings import Settings
from forager.tasks.schedule import revisit_offers
from products.product_shop import Shop, lamp

GTIN = "4006381333931"
UPC = "036000291452"


@pytest.fixture
async def shops(database: Database, settings: Settings) -> list[Shop]:
    names = ("one", "two", "three", "four")
    return [await Shop(database, settings, host=f"{name}.example").open() for name in names]


def hosts(offers: list[Any]) -> list[str]:
    return [offer.domain.partition(".")[0] for offer in offers]


async def test_offers_are_compared_cheapest_first(shops: list[Shop], database: Database) -> None:
    one, two, three, four = shops
    await one.visit("lamp", lamp("50", gtin=GTIN))
    await two.visit("lamp", lamp("40", gtin=f"0{GTIN}"))
    await three.visit("lamp", lamp("30", gtin=GTIN, availability=Availability.OUT_OF_STOCK))
    await four.visit("lamp", lamp("45", gtin=GTIN, currency="CHF"))
    await four.visit("other", lamp("1.50", gtin=UPC))
    offers = await compare_offers(database, GTIN)
    assert hosts(offers) == ["four", "two", "one", "three"]
    assert [offer.percent for offer in offers] == [0.0, 0.0, 25.0, -25.0]
    assert await compare_offers(database, f"0{GTIN}") == offers
    by_url = await compare_offers(database, one.url("lamp"))
    assert hosts(by_url) == hosts(offers)
    assert [o.matched_by for o in by_url] == ["gtin", "gtin", None, "gtin"]
    assert hosts(await compare_offers(database, UPC.lstrip("0").rjust(13, "0"))) == ["four"]


async def test_part_numbers_match_where_a_gtin_is_missing(
    shops: list[Shop], database: Database
) -> None:
    one, two, three, four = shops
    await one.visit("lamp", lamp("50", gtin=GTIN, mpn="WH-1000 XM4"))
    await two.visit("lamp", lamp("40", gtin=None, mpn="wh1000xm4", brand="lumen & sons"))
    # another brand, and another GTIN
    await three.visit("lamp", lamp("30", gtin=None, mpn="WH1000XM4", brand="Other"))
    await four.visit("lamp", lamp("30", gtin=UPC, mpn="WH1000XM4"))
    assert hosts(await compare_offers(database, GTIN)) == ["two", "one"]
    assert hosts(await compare_offers(database, two.url("lamp"))) == ["four", "two", "one"]


async def test_numbers_that_shops_assign_match_nothing(
    shops: list[Shop], database: Database
) -> None:
    for shop in shops[:2]:
        await shop.visit("lamp", lamp("50", gtin="2012345678903"))
    assert hosts(await compare_offers(database, shops[0].url("lamp"))) == ["one"]


async def test_what_nobody_offers(shops: list[Shop], database: Database) -> None:
    with pytest.raises(NotFound, match="GTIN"):
        await compare_offers(database, GTIN)
    with pytest.raises(NotFound):
        await compare_offers(database, shops[0].url("lamp"))


async def test_a_change_brings_visits_of_other_offers_forward(
    shops: list[Shop], database: Database, settings: Settings
) -> None:
    written = [await shop.visit("lamp", lamp("50", gtin=GTIN)) for shop in shops]
    await shops[0].rows(
        """
        UPDATE crawl_tasks
           SET status = 'completed', next_crawl_at = now() + interval '1 day',
               completed_at = now() - CASE WHEN id = %s THEN interval '10 min' ELSE interval '2 h'
                                      END,
               hold = CASE WHEN id = %s THEN 'paused' END
        RETURNING id
        """,
        written[2].task_id,
        written[3].task_id,
    )
    assert written[0].product_id is not None
    async with database.transaction() as connection:
        await revisit_offers(connection, [written[0].product_id], settings=settings)
    rows = await shops[0].rows(
        """
        SELECT round(extract(epoch FROM next_crawl_at - now()) / 600) * 10
          FROM crawl_tasks ORDER BY id
        """
    )
    # itself, due now, an hour after its last visit, and due when it is resumed
    assert [int(minutes) for (minutes,) in rows] == [1440, 0, 50, 0]


async def exported(database: Database, **wanted: Any) -> list[dict[str, str]]:
    file = io.BytesIO()
    await export_products(database, ProductExport(ProductsExportFormat.CSV, **wanted), file)
    return list(csv.DictReader(io.StringIO(file.getvalue().decode())))


async def test_an_export_compares_offers(shops: list[Shop], database: Database) -> None:
    for shop, price in zip(shops, ("50", "40", "60", "50"), strict=True):
        await shop.visit("lamp", lamp(price, gtin=GTIN))
        await shop.visit("alone", lamp("5", gtin=None))
    rows = await exported(
        database, filters=Filters(domain="one.example"), content=ExportContent.OFFERS
    )
    listed = [
        (row["domain"], row["offer_domain"], row["offer_price"], row["percent"]) for row in rows
    ]
    assert listed == [
        ("one.example", "two.example", "40", "-20.0"),
        ("one.example", "three.example", "60", "20.0"),
        ("one.example", "four.example", "50", "0.0"),
    ]


async def test_an_export_has_any_column(shops: list[Shop], database: Database) -> None:
    await shops[0].visit("lamp", lamp("50", mpn="X-1"))
    [row] = await exported(database, columns=("mpn", "price", "variants"))
    assert row == {"mpn": "X-1", "price": "50", "variants": "[]"}
    [row] = await exported(database, columns=("all",))
    assert (row["description"][:12], row["parser"]) == ("A heavy lamp", "generic")
    with pytest.raises(InvalidInput, match="colour"):
        await exported(database, columns=("colour",))


async def test_the_largest_changes_come_first(shops: list[Shop], database: Database) -> None:
    one, two, three, four = shops
    for shop, price in zip(shops, ("100", "100", "100", "100"), strict=True):
        await shop.visit("lamp", lamp(price))
    await one.rows(
        "UPDATE price_history SET recorded_at = now() - interval '8 days' RETURNING product_id"
    )
    for price in ("90", "80"):
        await one.visit("lamp", lamp(price))
    await two.visit("lamp", lamp("150"))
    for price in ("10.50", "100"):
        await three.visit("lamp", lamp(price))
    # another currency is believed when it was seen twice
    for price in ("100", "100", "101"):
        await four.visit("lamp", lamp(price, currency="CHF"))
    week = datetime.now(UTC) - timedelta(days=7)
    moves = await largest_changes(database, week)
    listed = [(m.domain, int(m.old_price), int(m.price), m.percent, m.currency) for m in moves]
    assert listed == [
        ("two.example", 100, 150, 50.0, "EUR"),
        ("one.example", 100, 80, -20.0, "EUR"),
        ("four.example", 100, 101, 1.0, "CHF"),
    ]
    assert len(await largest_changes(database, week, Filters(domain="one.example"))) == 1
    assert await largest_changes(database, datetime.now(UTC)) == []
    drops = await largest_changes(database, week, direction=PriceDirection.DROPS)
    assert [(m.domain, int(m.amount)) for m in drops] == [("one.example", -20)]
    for price in ("1000", "1000"):
        await one.visit("sofa", lamp(price, name="Sofa", sku="S-9", gtin=None))
    await one.visit("sofa", lamp("1060", name="Sofa", sku="S-9", gtin=None))
    rises = await largest_changes(
        database, week, direction=PriceDirection.RISES, by=PriceMeasure.AMOUNT
    )
    assert [int(m.amount) for m in rises] == [60, 50, 1]


def in_sizes(**prices: str) -> Product:
    sizes = [
        Variant(sku=sku if sku != "X" else None, name=f"Size {sku}", price=Decimal(price),
                currency="EUR", availability=Availability.IN_STOCK)
        for sku, price in prices.items()
    ]  # fmt: skip
    return lamp("10", variants=tuple(sizes))


async def test_variants_have_their_own_history(shops: list[Shop], database: Database) -> None:
    shop = shops[0]
    for visit in (in_sizes(S="10", X="12"), in_sizes(S="9", X="12"), in_sizes(S="9", X="12")):
        await shop.visit("lamp", visit)

    async def history(variant: str | None) -> list[tuple[Decimal | None, float | None]]:
        page = await price_history(database, shop.url("lamp"), variant=variant)
        return [(entry.price, entry.percent) for entry in page.items]

    assert await history("S") == [(Decimal(9), -10.0), (Decimal(10), None)]
    assert await history("Size X") == [(Decimal(12), None)]
    assert await history(None) == [(Decimal(10), None)]
    assert await history("other") == []
