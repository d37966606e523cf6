"""Alert rules that compare with other shops and own prices; changes and previews of rules."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import AlreadyThere, InvalidInput, NotFound
from forager.extract.product.product import Availability
from forager.products.alerts.preview import preview_alert
from forager.products.alerts.rules import AlertKind, NewAlert, change_alert, list_alerts
from forager.products.items.own_prices import import_own_prices
from forager.settings import Settings
from products.product_shop import Shop, lamp
from products.test_alerts import GONE, age, fired, rule

GTIN = "4006381333931"


@pytest.fixture
async def other(database: Database, settings: Settings) -> Shop:
    return await Shop(database, settings, host="other.example").open()


async def test_rises_and_prices_above_an_amount(shop: Shop) -> None:
    await rule(shop, "price_rise", percent=Decimal(10))
    assert await fired(shop, *map(lamp, ["100", "109", "120", "60", "70"])) == ["120", "70"]
    await rule(shop, "price_above", amount=Decimal(80))
    assert await fired(shop, *map(lamp, ["75", "81", "82", "79", "85"])) == [
        "120", "70", "81", "85",
    ]  # fmt: skip


async def test_a_rise_is_measured_from_the_lowest_price_of_days(shop: Shop) -> None:
    await rule(shop, "price_rise", percent=Decimal(10), days=30)
    await fired(shop, lamp("50"))
    await age(shop, 40)
    await fired(shop, lamp("100"))
    await age(shop, 31)
    assert await fired(shop, *map(lamp, ["105", "111", "115"])) == ["100", "111"]


async def test_an_offer_becomes_the_best_one_of_its_item_and_loses_that(
    shop: Shop, other: Shop
) -> None:
    await rule(shop, "best_offer")
    await other.visit("lamp", lamp("50"))
    gone = lamp("40", availability=Availability.OUT_OF_STOCK)
    assert await fired(shop, *map(lamp, ["60", "55", "49", "48", "51"]), gone, lamp("40")) == [
        "49", "51", "40",
    ]  # fmt: skip


async def test_a_shop_undercuts_the_own_price(shop: Shop) -> None:
    await rule(shop, "undercut")
    assert await fired(shop, lamp("30")) == []
    await import_own_prices(shop.database, f"gtin,price,currency\n{GTIN},45,EUR")
    assert await fired(shop, *map(lamp, ["44", "46", "45", "44.99", "44"])) == ["44.99"]


async def test_a_changed_rule_is_used_at_once_and_remembers_when_it_triggered(shop: Shop) -> None:
    number = await rule(shop, "price_drop", percent=Decimal(50))
    assert await fired(shop, *map(lamp, ["100", "90"])) == []
    changed = await change_alert(shop.database, number, {"percent": Decimal(5)})
    assert changed.condition == "price drop of 5 %"
    assert changed.last_triggered_at is None
    assert await fired(shop, lamp("80")) == ["80"]
    [listed] = (await list_alerts(shop.database)).items
    assert listed.last_triggered_at is not None
    await rule(shop, "price_drop", percent=Decimal(7))
    refused: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"amount": Decimal(1)}, InvalidInput),
        ({"percent": Decimal(7)}, AlreadyThere),
        ({"percent": None}, InvalidInput),
    ]
    for wrong, error in refused:
        with pytest.raises(error):
            await change_alert(shop.database, number, wrong)
    with pytest.raises(NotFound):
        await change_alert(shop.database, 99, {})


RULES: list[dict[str, Any]] = [
    {"kind": "price_drop", "percent": Decimal(5)},
    {"kind": "price_drop", "percent": Decimal(10), "days": 30},
    {"kind": "price_rise", "percent": Decimal(5), "days": 7},
    {"kind": "price_below", "amount": Decimal(95)},
    {"kind": "price_above", "amount": Decimal(95)},
    {"kind": "new_low", "days": 30},
    {"kind": "back_in_stock"},
    {"kind": "best_offer"},
    {"kind": "undercut"},
]


@pytest.mark.parametrize("terms", RULES, ids=lambda terms: terms["kind"])
async def test_a_preview_counts_what_the_rule_triggers(
    shop: Shop, other: Shop, terms: dict[str, Any]
) -> None:
    await import_own_prices(shop.database, f"gtin,price,currency\n{GTIN},93,EUR")
    await other.visit("lamp", lamp("94", brand="Rival"))
    await rule(shop, **terms, brand="Lumen & Sons")
    changes = map(lamp, ["100", "94", "93", "101", "88", "96", "90"])
    triggered = await fired(shop, *changes, lamp("90", availability=GONE), lamp("91"))
    kind = AlertKind(terms["kind"])
    new = NewAlert(**{**terms, "kind": kind, "brand": "Lumen & Sons"})
    found = await preview_alert(shop.database, new)
    assert triggered
    assert [
        f"{each.new.normalize():f}" for each in reversed(found.examples) if each.new
    ] == triggered
    assert (found.times, found.products, found.is_complete) == (len(triggered), 1, True)
    await age(shop, 40)
    assert (await preview_alert(shop.database, new)).times == 0
