"""The pages of items and of one alert rule: through HTTP, without a browser."""

from __future__ import annotations

import re

from forager.db.database import Database
from forager.extract.product.product import Availability
from forager.products.alerts.rules import list_alerts
from forager.products.items.own_prices import import_own_prices
from forager.settings import Settings
from products.product_shop import Shop, lamp
from web.visitor import Visitor

GTIN = "4006381333931"


async def open_shops(database: Database, settings: Settings) -> list[Shop]:
    names = ("one", "two", "three")
    shops = [await Shop(database, settings, host=f"{name}.example").open() for name in names]
    one, two, three = shops
    await one.visit("lamp", lamp("50", name="Lamp oil 500 ml"))
    await two.visit("lamp", lamp("40", name="Lamp oil 500 ml"))
    await three.visit("lamp", lamp("45", name="Lamp oil 500 ml", gtin=None))
    return shops


async def test_items_are_compared_linked_and_unlinked(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    shops = await open_shops(database, web_settings)
    await import_own_prices(database, f"gtin,price,currency\n{GTIN},45,EUR\n")
    page = (await visitor.get("/items")).text
    for shown in ("Lamp oil 500 ml", "two.example", "+25 %", "80.00", "/ l", "50 %"):
        assert shown in page.replace("\N{NO-BREAK SPACE}", " "), shown
    assert "No such items" in (await visitor.get("/items?show=gone")).text
    assert "two.example" in (await visitor.get("/items?show=undercut")).text
    assert (await visitor.get("/items?currency=nothing")).status == 200
    assert (await visitor.get("/items/show?item=17")).status == 404
    suggested = (await visitor.get("/items/suggestions")).text
    assert "three.example" in suggested
    linked = await visitor.act("/items/link", {"product": shops[2].url("lamp"), "to": GTIN})
    assert all(shop.host in linked.text for shop in shops)
    assert "No suggestions" in (await visitor.get("/items/suggestions")).text
    unlinked = await visitor.act("/items/unlink", {"product": "3"})
    assert "one.example" not in unlinked.text
    assert "two.example" not in unlinked.text
    assert "three.example" not in (await visitor.get(f"/items/show?item={GTIN}")).text
    table = (await visitor.get("/products/export?content=items&brand=none")).text
    assert len(table.splitlines()) == 1
    changes = (await visitor.get("/products/export?content=changes&days=7")).text
    assert changes.startswith("product_id,")


async def test_items_without_an_offer(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    assert "No items yet" in (await visitor.get("/items")).text
    assert "No prices yet" in (await visitor.get("/items/index")).text
    shop = await Shop(database, web_settings, host="one.example").open()
    gone = Availability.OUT_OF_STOCK
    await shop.visit("lamp", lamp("50", availability=gone))
    await shop.visit("desk", lamp("60", currency="CHF", name="Desk", gtin=None))
    assert "out of stock everywhere" in (await visitor.get("/items/show?item=1")).text
    assert "no rate" in (await visitor.get("/items/show?item=2&currency=EUR")).text
    index = (await visitor.get("/items/index")).text
    assert re.search(r'data-name="Index today"[^>]*>100<', index)


async def test_an_alert_rule_is_previewed_and_edited(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    [one, *_] = await open_shops(database, web_settings)
    await one.visit("lamp", lamp("30"))
    fields = {"kind": "price_drop", "percent": "10"}
    page = await visitor.act("/alerts", {**fields, "preview": "yes"})
    assert "would have triggered 1 time in the last 30 days, for 1 product" in page.text
    assert (await list_alerts(database)).items == []
    await visitor.act("/alerts", fields)
    page = await visitor.get("/alerts/1")
    assert 'name="percent"' in page.text
    assert 'name="amount"' not in page.text
    assert "never" in page.text
    await one.visit("lamp", lamp("20"))
    assert "never" not in (await visitor.get("/alerts")).text
    refused = await visitor.act("/alerts/1", {"percent": "200"})
    assert refused.status == 422
    changed = await visitor.act("/alerts/1", {"percent": "25", "days": "30"})
    assert "Alert changed: price drop of 25 % in 30 d" in changed.text
    assert (await visitor.get("/alerts/9")).status == 404
