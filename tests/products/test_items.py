"""Items: the same article in several shops, compared with each other and with the own prices."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from forager.cli.output import show_rows
from forager.db.database import Database, SessionLimits
from forager.errors import InvalidInput, NotFound
from forager.extract.product.product import Availability
from forager.extract.product.quantity import Quantity, quantity_in
from forager.products.filters import Filters
from forager.products.items.item import (
    item_numbers,
    link_offers,
    list_items,
    price_index,
    show_item,
    suggest_links,
    unlink_offer,
)
from forager.products.items.operations import ItemOffer
from forager.products.items.own_prices import import_own_prices
from forager.products.items.rates import Rate, Rates, import_rates
from forager.products.offers import compare_offers
from forager.settings import Settings
from products.product_shop import Shop, lamp
from support.sql import execute

GTIN = "4006381333931"
UPC = "036000291452"
KEY = f"gtin:{GTIN}"


@pytest.fixture
async def shops(database: Database, settings: Settings) -> list[Shop]:
    names = ("one", "two", "three")
    return [await Shop(database, settings, host=f"{name}.example").open() for name in names]


def test_amounts_and_offers_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    offer = ItemOffer.model_validate(
        {
            "product_id": 7, "url": "https://one.example/lamp", "domain": "one.example",
            "name": "Lamp", "price": "249", "currency": "EUR", "availability": "in_stock",
            "matched_by": "gtin", "price_changed_at": None, "last_seen_at": datetime.now(UTC),
            "compared_price": "249", "percent": 5.0, "unit_price": None, "unit": None,
        }
    )  # fmt: skip
    show_rows(ItemOffer.columns, [offer])
    shown = capsys.readouterr().out
    assert "EUR 249.00" in shown
    assert "COMPARED" not in shown
    show_rows(ItemOffer.columns, [offer, offer.model_copy(update={"compared_price": "231.5"})])
    assert "231.50" in capsys.readouterr().out
    assert "+5.0 %" in shown
    assert "PER UNIT" not in shown


async def test_offers_of_a_product_form_one_item_with_its_best_price(
    shops: list[Shop], database: Database
) -> None:
    one, two, three = shops
    await one.visit("lamp", lamp("50", name="Lamp oil 500 ml"))
    await two.visit("lamp", lamp("40", name="Lamp oil 0,5 l"))
    await three.visit("lamp", lamp("30", availability=Availability.OUT_OF_STOCK))
    await three.visit("other", lamp("7", gtin=UPC, availability=Availability.OUT_OF_STOCK))
    first, second = (await list_items(database)).items
    assert (first.item, first.shops, first.available) == (KEY, 3, 2)
    assert (first.best_price, first.best_shop, first.spread) == (Decimal(40), "two.example", 25.0)
    assert (first.unit_price, first.unit) == (Decimal(80), "l")
    assert (second.shops, second.available, second.best_price) == (1, 0, None)
    page = await list_items(database, limit=1)
    rest = await list_items(database, limit=1, cursor=page.next_cursor)
    assert [*page.items, *rest.items] == [first, second]
    assert rest.next_cursor is None
    assert [i.item for i in (await list_items(database, out_of_stock=True)).items] == [second.item]
    assert (await list_items(database, min_shops=2)).items == [first]
    assert (await list_items(database, Filters(brand="nobody"))).items == []
    with pytest.raises(InvalidInput):
        await list_items(database, cursor="eyJ9")


@pytest.mark.parametrize(
    ("name", "stated", "expected"),
    [
        ("Lamp oil", "0.5 l", ("80.00", "l")),
        ("Lamp oil 500 ml", "0.5 l", ("80.00", "l")),
        ("Lamp oil 1 l", None, ("40.00", "l")),
        ("Lamp oil, 4 pcs", "2 l", ("20.00", "l")),
        ("Lamp oil 1 l", "4 piece", ("40.00", "l")),
        # one of them is wrong
        ("Lamp oil 1 l", "0.5 l", None),
        ("Lamp oil", None, None),
    ],
)
async def test_unit_prices_with_the_quantity_of_the_page(
    shops: list[Shop],
    database: Database,
    name: str,
    stated: str | None,
    expected: tuple[str, str] | None,
) -> None:
    await shops[0].visit("lamp", lamp("40", name=name, quantity=stated))
    [offer] = (await show_item(database, KEY)).offers
    found = (offer.unit_price, offer.unit)
    assert found == ((None, None) if expected is None else (Decimal(expected[0]), expected[1]))


async def test_the_lowest_price_of_an_item_has_a_history(
    shops: list[Shop], database: Database
) -> None:
    one, two, _ = shops
    await one.visit("lamp", lamp("50"))
    await two.visit("lamp", lamp("60"))
    await two.visit("lamp", lamp("45"))
    await two.visit("lamp", lamp("45", availability=Availability.OUT_OF_STOCK))
    await one.visit("lamp", lamp("50", availability=Availability.OUT_OF_STOCK))
    found = await show_item(database, one.url("lamp"))
    assert [(each.price, each.shop) for each in found.lowest] == [
        (None, None), (50, "one.example"), (45, "two.example"), (50, "one.example"),
    ]  # fmt: skip
    assert [each.offer.domain for each in found.offers] == ["two.example", "one.example"]
    assert (await show_item(database, GTIN)).summary == found.summary
    assert (await show_item(database, KEY)).summary == found.summary
    with pytest.raises(NotFound):
        await show_item(database, UPC)


async def test_part_numbers_join_offers_without_a_gtin(
    shops: list[Shop], database: Database
) -> None:
    one, two, three = shops
    await one.visit("lamp", lamp("50", mpn="X-1"))
    await two.visit("lamp", lamp("40", mpn="x 1", gtin=None))
    [item] = (await list_items(database)).items
    assert (item.item, item.shops) == (KEY, 2)
    # two articles with this part number: it no longer says which one is meant
    await three.visit("lamp", lamp("45", mpn="X1", gtin=UPC))
    assert [i.shops for i in (await list_items(database)).items] == [1, 1, 1]


async def test_users_link_and_unlink_offers(shops: list[Shop], database: Database) -> None:
    one, two, three = shops
    await one.visit("lamp", lamp("50", gtin=None))
    await two.visit("lamp", lamp("40", gtin=None))
    await three.visit("lamp", lamp("45"))
    [suggested] = (await suggest_links(database, limit=1)).items
    assert suggested.domain != suggested.other_domain
    await link_offers(database, one.url("lamp"), two.url("lamp"))
    assert [i.shops for i in (await list_items(database)).items] == [2, 1]
    await link_offers(database, two.url("lamp"), GTIN)
    await link_offers(database, one.url("lamp"), GTIN)
    [item] = (await list_items(database)).items
    assert (item.item, item.shops, item.best_price) == (KEY, 3, Decimal(40))
    assert (await suggest_links(database)).items == []
    offers = await compare_offers(database, one.url("lamp"))
    assert [each.matched_by for each in offers] == ["user", "user", None]
    assert await unlink_offer(database, two.url("lamp")) == "product:2"
    assert len(await compare_offers(database, two.url("lamp"))) == 1
    assert [i.shops for i in (await list_items(database)).items] == [2, 1]
    with pytest.raises(NotFound):
        await link_offers(database, one.url("lamp"), "gtin:1")


async def test_prices_are_compared_in_one_currency_with_dated_rates(
    shops: list[Shop], database: Database
) -> None:
    one, two, _ = shops
    await one.visit("lamp", lamp("50", currency="EUR"))
    await two.visit("lamp", lamp("40", currency="CHF"))
    [item] = (await list_items(database, currency="eur")).items
    assert (item.best_price, item.shops) == (Decimal(50), 2)
    await import_rates(database, "date,from,to,rate\n2020-01-01,CHF,EUR,2\n2021-01-01,CHF,EUR,1.1")
    [item] = (await list_items(database, currency="EUR")).items
    assert (item.best_price, item.best_shop) == (Decimal(44), "two.example")
    [item] = (await list_items(database, currency="CHF")).items
    assert (item.best_price, item.highest_price) == (Decimal(40), Decimal("45.45"))
    for broken in ("date,from,to\n", "date,from,to,rate\n2020-01-01,EUR,EUR,1", "", 'a,"b',
                   "date,from,to,rate\n2020-01-01,EUR,CHF,NaN"):  # fmt: skip
        with pytest.raises(InvalidInput):
            await import_rates(database, broken)


def test_rates_are_those_of_their_day_and_may_go_over_a_third_currency() -> None:
    rates = Rates(
        [
            Rate("EUR", "USD", date(2026, 1, 1), Decimal("1.25")),
            Rate("EUR", "USD", date(2026, 2, 1), Decimal("1.5")),
            Rate("EUR", "CHF", date(2026, 1, 1), Decimal("0.5")),
        ]
    )
    ten = Decimal(10)
    assert rates.convert(ten, "EUR", "USD", date(2025, 12, 31)) is None
    assert rates.convert(ten, "EUR", "USD", date(2026, 1, 31)) == Decimal("12.50")
    assert rates.convert(ten, "USD", "CHF", date(2026, 2, 1)) == Decimal("3.33")
    assert rates.convert(ten, "EUR", "SEK", date(2026, 2, 1)) is None


async def test_shops_are_compared_with_the_own_price_list(
    shops: list[Shop], database: Database
) -> None:
    one, two, three = shops
    await one.visit("lamp", lamp("50"))
    await two.visit("lamp", lamp("40"))
    await three.visit("desk", lamp("90", gtin=None, brand="Oak", mpn="D-1"))
    text = f"gtin;brand;mpn;price;currency\n{GTIN};;;45;EUR\n;OAK;d1;80;EUR\n"
    assert await import_own_prices(database, text) == 2
    [item] = (await list_items(database, undercut=True)).items
    assert (item.item, item.own_price, item.below_own) == (KEY, Decimal(45), 0.5)
    numbers = await item_numbers(database)
    assert (numbers.with_own_price, numbers.undercut) == (2, 1)
    assert (numbers.shops_compared, numbers.shops_below) == (3, 1)
    assert await import_own_prices(database, f"gtin,price,currency\n{GTIN},39,EUR") == 1
    assert (await list_items(database, undercut=True)).items == []
    for broken in ("gtin,price,currency\n123,1,EUR", "price,currency\n1,EUR",
                   f"gtin,price,currency\n{GTIN},-1,EUR"):  # fmt: skip
        with pytest.raises(InvalidInput):
            await import_own_prices(database, broken)


async def test_the_price_index_follows_prices_by_category(
    shops: list[Shop], database: Database
) -> None:
    one, *_ = shops
    await one.visit("a", lamp("50"))
    await one.visit("b", lamp("100", gtin=UPC))
    await one.rows("UPDATE price_history SET recorded_at = now() - interval '3 days' RETURNING id")
    await one.visit("a", lamp("100"))
    points = await price_index(database, since=datetime.now(UTC) - timedelta(days=9))
    assert [(p.category, p.value, p.products) for p in (points[0], points[-1])] == [
        ("Home", 100.0, 2), ("Home", 141.42, 2),
    ]  # fmt: skip
    assert len(points) == 4
    assert await price_index(database, Filters(brand="nobody")) == []
    seen = await one.rows("SELECT category, day, value, products FROM price_index ORDER BY day")
    assert seen == [(p.category, p.day, Decimal(str(p.value)), p.products) for p in points]


async def test_changes_of_prices_are_a_view(shops: list[Shop], database: Database) -> None:
    one, *_ = shops
    for price, currency in (("50", "EUR"), ("40", "EUR"), ("55", "CHF"), ("30", "EUR")):
        await one.visit("lamp", lamp(price, currency=currency))
        await one.visit("lamp", lamp(price, currency=currency))
    assert await one.rows(
        "SELECT domain, currency, old_price, price, amount, percent FROM price_changes"
        " ORDER BY recorded_at"
    ) == [("one.example", "EUR", 50, 40, -10, -20), ("one.example", "EUR", 40, 30, -10, -25)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Coffee beans 500 g", ("0.5", "kg")),
        ("Water 6 x 1,5 l", ("9", "l")),
        ("Pack of 4 soap 100g", ("0.4", "kg")),
        ("Batteries AA 12 pcs", ("12", "piece")),
        ("Tea 20 bags 40 g", ("0.04", "kg")),
        ("Lamp E27 806 lm", None),
        ("Phone 5G 128 GB", None),
        ("From 1 kg to 5 kg", None),
        ("Rope 0 g", None),
        ("9" * 400 + " kg", None),
    ],
)
def test_quantities_in_names(name: str, expected: tuple[str, str] | None) -> None:
    found = quantity_in(name)
    assert found == (None if expected is None else Quantity(Decimal(expected[0]), expected[1]))


async def test_linking_a_suggestion_takes_no_offer_out_of_an_item(
    shops: list[Shop], database: Database
) -> None:
    one, two, three = shops
    await one.visit("lamp", lamp("50", gtin=None))
    await two.visit("lamp", lamp("40"))
    await three.visit("lamp", lamp("45"))
    first = await suggest_links(database, limit=1)
    second = await suggest_links(database, limit=1, cursor=first.next_cursor)
    pairs = [(each.domain, each.other_domain) for each in (*first.items, *second.items)]
    assert pairs == [(one.host, two.host), (one.host, three.host)]
    [suggested] = first.items
    await link_offers(database, str(suggested.product_id), str(suggested.other_id))
    [item] = (await list_items(database)).items
    assert (item.item, item.shops) == (KEY, 3)
    assert (await suggest_links(database)).items == []


async def test_suggestions_in_a_large_catalog(database: Database) -> None:
    """In proportion to its size: comparing each pair of 20,000 products took over a minute."""
    await execute(
        database,
        """
        WITH shop AS (
            INSERT INTO domains (domain_name, base_url)
            SELECT name, 'https://' || name FROM unnest(ARRAY['a.example', 'b.example']) AS name
            RETURNING id, base_url
        )
        INSERT INTO products (domain_id, url, url_hash, product_name, content_hash, parser,
                              parser_version)
        SELECT shop.id, base_url || '/' || n, sha256((base_url || n)::bytea),
               CASE WHEN n <= 2 THEN 'Lumen lamp' ELSE base_url || n || ' lamp' END,
               sha256(n::text::bytea), 'generic', '1'
          FROM shop, generate_series(1, 10000) n
        """,
    )
    await execute(database, "ANALYZE products")
    limits = SessionLimits(statement_ms=10_000)
    async with Database(database.url, limits=limits) as impatient:
        found = (await suggest_links(impatient)).items
    assert [(each.name, each.other_name) for each in found] == [("Lumen lamp", "Lumen lamp")] * 2
    assert {each.other_id for each in found} == {min(each.other_id for each in found)}
