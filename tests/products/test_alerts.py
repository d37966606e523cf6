"""Alert rules: each crossing is one event, in the transaction that stores the price."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import AlreadyThere, InvalidInput, NotFound
from forager.extract.product.product import Availability, Product, Variant
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert, delete_alert, list_alerts
from forager.settings import Settings
from products.product_shop import Shop, lamp
from products.test_writer import Cancelled, write_and_cancel
from support.sql import execute

GONE = Availability.OUT_OF_STOCK


async def rule(shop: Shop, kind: str, **terms: Any) -> int:
    return (await add_alert(shop.database, NewAlert(AlertKind(kind), **terms))).id


async def alerts(shop: Shop) -> list[dict[str, Any]]:
    rows = await shop.rows(
        "SELECT payload FROM catalog_events WHERE kind = 'product.alert' ORDER BY id"
    )
    return [payload for (payload,) in rows]


async def fired(shop: Shop, *visits: Product) -> list[str | None]:
    """The new prices that triggered an alert."""
    for product in visits:
        await shop.visit("lamp", product)
    return [payload["new"] for payload in await alerts(shop)]


async def age(shop: Shop, days: int) -> None:
    """Move the whole history this many days back."""
    await execute(
        shop.database,
        "UPDATE price_history SET recorded_at = recorded_at - make_interval(days => %s)",
        days,
    )


async def test_a_drop_is_measured_from_the_last_known_price(shop: Shop) -> None:
    await rule(shop, "price_drop", percent=Decimal(5))
    sold_out = lamp(None, availability=GONE)
    # 4.9 % down, sold out without a price, 5 % down on what was known, and the same again
    prices = [lamp("100"), lamp("95.10"), sold_out, lamp("90.345"), lamp("90.345"), lamp("120")]
    assert await fired(shop, *prices) == ["90.345"]
    [payload] = await alerts(shop)
    assert (payload["old"], payload["percent"], payload["currency"]) == ("95.10", -5.0, "EUR")
    assert payload["rule"] == {"id": payload["rule"]["id"], "kind": "price_drop", "percent": "5"}
    assert payload["name"] == "Brass Desk Lamp"


async def test_a_drop_over_days_adds_small_steps_up(shop: Shop) -> None:
    await rule(shop, "price_drop", percent=Decimal(5), days=30)
    await fired(shop, lamp("200"))
    await age(shop, 40)
    await fired(shop, lamp("100"))
    await age(shop, 31)
    # the 200 were over before the 30 days began, the 100 were not
    steps = [lamp("98"), lamp("96"), lamp("94"), lamp("92"), lamp("96"), lamp("93")]
    assert await fired(shop, *steps) == ["100", "94", "93"]


async def test_below_fires_once_until_it_was_above_again(shop: Shop) -> None:
    await rule(shop, "price_below", amount=Decimal(40), currency="EUR")
    prices = ["50", "39.99", "38", "38", "40", "35"]
    assert await fired(shop, *map(lamp, prices)) == ["39.99", "35"]
    # another currency is not compared, and a new product may be below from the start
    await shop.visit("other", lamp("10", currency="USD"))
    await shop.visit("third", lamp("10"))
    assert [payload["new"] for payload in await alerts(shop)] == ["39.99", "35", "10"]


async def test_a_new_low_counts_what_was_valid_in_the_days(shop: Shop) -> None:
    await rule(shop, "new_low", days=90)
    await fired(shop, lamp("30"))
    await age(shop, 50)
    await fired(shop, lamp("50"))
    await age(shop, 50)
    # 30 was valid until 50 days ago; 29 is a new low, and so is every lower price
    assert await fired(shop, lamp("31"), lamp("29"), lamp("29"), lamp("28.50")) == ["29", "28.50"]
    await age(shop, 91)
    assert await fired(shop, lamp("60")) == ["29", "28.50"]
    await age(shop, 91)
    assert await fired(shop, lamp("59")) == ["29", "28.50", "59"]


async def test_back_in_stock(shop: Shop) -> None:
    await rule(shop, "back_in_stock")
    stock = [
        Availability.IN_STOCK, Availability.LIMITED, GONE, None, Availability.PREORDER,
        Availability.LIMITED, Availability.IN_STOCK,
    ]  # fmt: skip
    await fired(shop, *[lamp("50", availability=state) for state in stock])
    assert [payload["availability"] for payload in await alerts(shop)] == ["limited"]


async def test_a_rule_is_for_a_product_a_domain_a_selection_or_all(
    shop: Shop, database: Database, settings: Settings
) -> None:
    other = await Shop(database, settings, host="www.other.example").open()
    for each in (shop, other):
        await each.visit("lamp", lamp("50"))
        await each.visit("desk", lamp("50", brand="Oak", gtin=None, category=("Desks",)))
    scopes = {
        "product": {"product": shop.url("lamp")},
        "domain": {"domain": "other.example"},
        "brand": {"brand": "oak"},
        "category": {"domain": "shop.example", "category": "Desks"},
        "gtin": {"gtin": "04006381333931"},
        "all": {},
    }
    ids = {
        await rule(shop, "price_below", amount=Decimal(40), **scope): name
        for name, scope in scopes.items()
    }
    for each in (shop, other):
        await each.visit("lamp", lamp("30"))
        await each.visit("desk", lamp("30", brand="Oak", gtin=None, category=("Desks",)))
    triggered = [
        (ids[p["rule"]["id"]], p["url"].removeprefix("https://")) for p in await alerts(shop)
    ]
    assert sorted(triggered) == [
        ("all", "shop.example/desk"), ("all", "shop.example/lamp"),
        ("all", "www.other.example/desk"), ("all", "www.other.example/lamp"),
        ("brand", "shop.example/desk"), ("brand", "www.other.example/desk"),
        ("category", "shop.example/desk"),
        ("domain", "www.other.example/desk"), ("domain", "www.other.example/lamp"),
        ("gtin", "shop.example/lamp"), ("gtin", "www.other.example/lamp"),
        ("product", "shop.example/lamp"),
    ]  # fmt: skip


async def test_what_was_not_committed_triggers_at_the_next_visit(shop: Shop) -> None:
    await rule(shop, "price_below", amount=Decimal(40))
    await shop.visit("lamp", lamp("50"))
    page = await shop.page("lamp", lamp("30"))
    with pytest.raises(Cancelled):
        await write_and_cancel(shop, page)
    assert await alerts(shop) == []
    await shop.write(page)
    await shop.write(page)
    assert len(await alerts(shop)) == 1


async def test_an_implausible_price_triggers_only_when_it_is_confirmed(shop: Shop) -> None:
    await rule(shop, "price_drop", percent=Decimal(5))
    assert await fired(shop, lamp("900"), lamp("0.90")) == []
    assert await fired(shop, lamp("0.90")) == ["0.90"]


async def test_rules_are_listed_and_deleted(shop: Shop) -> None:
    await shop.visit("lamp", lamp("50"))
    first = await rule(shop, "new_low", days=90, domain="SHOP.example")
    second = await rule(shop, "back_in_stock", product=shop.url("lamp"))
    page = await list_alerts(shop.database, limit=1)
    assert (page.items[0].id, page.items[0].selection) == (first, {"domain": "shop.example"})
    page = await list_alerts(shop.database, cursor=page.next_cursor)
    assert [(r.id, r.product_url) for r in page.items] == [(second, shop.url("lamp"))]
    assert (await delete_alert(shop.database, first)).id == first
    with pytest.raises(NotFound):
        await delete_alert(shop.database, first)
    with pytest.raises(AlreadyThere):
        await rule(shop, "back_in_stock", product=shop.url("lamp"))


@pytest.mark.parametrize(
    "terms",
    [
        {"kind": "price_drop"},
        {"kind": "price_drop", "percent": Decimal(100)},
        {"kind": "price_below", "amount": Decimal(0)},
        {"kind": "price_below", "amount": Decimal("NaN")},
        {"kind": "new_low", "days": 0},
        {"kind": "back_in_stock", "percent": Decimal(5)},
        {"kind": "back_in_stock", "product": "1", "domain": "shop.example"},
        {"kind": "back_in_stock", "gtin": "123"},
        {"kind": "price_below", "amount": Decimal(1), "currency": "euro"},
    ],
)
async def test_impossible_rules_are_refused(shop: Shop, terms: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await rule(shop, **terms)


async def test_unknown_products_and_domains_are_refused(shop: Shop) -> None:
    for scope in ({"product": "77"}, {"domain": "nowhere.example"}):
        with pytest.raises(NotFound):
            await rule(shop, "back_in_stock", **scope)


def in_sizes(**prices: str) -> Product:
    sizes = [
        Variant(sku=sku, price=Decimal(price), currency="EUR") for sku, price in prices.items()
    ]
    return lamp("10", variants=tuple(sizes))


async def events(shop: Shop) -> list[tuple[str, str | None, str | None]]:
    rows = await shop.rows("SELECT kind, payload FROM catalog_events ORDER BY id")
    return [(kind, p.get("variant"), p.get("new")) for kind, p in rows[1:]]


async def test_a_variant_has_its_own_events_and_alerts(shop: Shop) -> None:
    await rule(shop, "price_drop", percent=Decimal(5))
    await rule(shop, "new_low", days=30)
    for visit in (in_sizes(S="10", L="12"), in_sizes(S="10", L="11"), in_sizes(S="10", L="11.50")):
        await shop.visit("lamp", visit)
    assert await events(shop) == [
        ("product.variant_changed", "L", "11"),
        ("product.alert", "L", "11"),
        ("product.alert", "L", "11"),
        ("product.variant_changed", "L", "11.50"),
    ]
    assert [(p["rule"]["kind"], p["percent"]) for p in await alerts(shop)] == [
        ("price_drop", -8.33), ("new_low", -8.33)
    ]  # fmt: skip


async def test_a_variant_that_changes_with_its_product_is_one_event(shop: Shop) -> None:
    await rule(shop, "price_drop", percent=Decimal(5))
    stock = Availability.IN_STOCK
    for price in ("10", "8"):
        small = Variant(sku="S", price=Decimal(price), currency="EUR", availability=stock)
        await shop.visit("lamp", lamp(price, variants=(small,)))
    assert await events(shop) == [
        ("product.price_changed", None, "8"), ("product.alert", None, "8")
    ]  # fmt: skip


async def test_a_variant_whose_price_moves_too_far_must_be_seen_twice(shop: Shop) -> None:
    await shop.visit("lamp", in_sizes(S="10", L="12"))
    wrong = await shop.visit("lamp", in_sizes(S="10", L="1200"))
    [problem] = wrong.problems
    assert (problem.field, problem.rule, wrong.outcome) == ("variants", "step", "suspect")
    assert problem.message == "the price of L was 12, and is 1200 now"
    assert await events(shop) == []
    await shop.visit("lamp", in_sizes(S="10", L="13"))
    assert await events(shop) == [("product.variant_changed", "L", "13")]
    for _ in range(2):
        await shop.visit("lamp", in_sizes(S="10", L="1300"))
    assert (await events(shop))[1:] == [("product.variant_changed", "L", "1300")]
    assert await shop.rows("SELECT problems FROM products") == [([],)]
