"""Forms of domains, proxies, webhooks, parsers and alerts: through HTTP, without a browser."""

from __future__ import annotations

from forager.db.database import Database
from forager.fetch.domains.service import Domains
from forager.fetch.proxies.costs import UsageLog
from forager.parsers.pattern import GENERIC_VERSION
from forager.products.alerts.rules import list_alerts
from forager.settings import Settings
from parsers.archived_kiosk import Kiosk, item, kiosk_parsers
from products.rows import add_product
from support.sql import execute
from web.catalog_rows import HOSTILE, Catalog
from web.visitor import Visitor


async def test_a_domain_is_changed_and_its_settings_taken_back(
    visitor: Visitor, database: Database, catalog: Catalog
) -> None:
    where = "/domains/shop.example"
    fields = {"delay": "2.5", "concurrency": "3", "active": "yes", "every": "6h", "adaptive": "no",
              "currency": "eur", "render": "always", "render_urls": "/app/*"}  # fmt: skip
    await visitor.act(f"{where}/set", fields)
    set_to = await Domains(database).get("shop.example")
    assert (set_to.render, set_to.render_urls) == ("always", ["/app/*"])
    assert (set_to.crawl_delay_seconds, set_to.crawl_frequency) == (2.5, 21600)
    assert (set_to.adaptive, set_to.currency, set_to.allow_private) == (False, "EUR", False)
    assert 'value="6h"' in (await visitor.get(where)).text
    await visitor.act(f"{where}/set", {"active": "yes"})
    taken = await Domains(database).get("shop.example")
    assert (taken.crawl_delay_seconds, taken.crawl_frequency, taken.adaptive) == (None, None, None)
    assert (taken.render, taken.render_urls) == (None, [])
    await visitor.act(f"{where}/unblock")
    assert (await Domains(database).get("shop.example")).blocked_until is None
    assert (await visitor.act(f"{where}/set", {"every": "soon"})).status == 422
    assert (await visitor.act(f"{where}/set", {"render": "maybe"})).status == 422


async def test_a_proxy_hides_its_password_and_is_switched(
    visitor: Visitor, catalog: Catalog
) -> None:
    page = await visitor.get("/proxies")
    assert "somebody:***@proxy.example:3128" in page.text
    assert "secret" not in page.text
    move = f"/proxies/{catalog.proxy_id}/move"
    assert "s-disabled" in (await visitor.act(move, {"move": "disable"})).text
    assert "s-disabled" not in (await visitor.act(move, {"move": "enable"})).text
    assert "No proxies" in (await visitor.act(move, {"move": "remove"})).text
    assert (await visitor.act("/proxies", {"url": "http://127.0.0.1:1"})).status >= 400


async def test_regions_and_costs_are_set_and_shown(
    visitor: Visitor, database: Database, catalog: Catalog
) -> None:
    await visitor.act("/domains/shop.example/set", {"active": "yes", "region": "eu"})
    assert (await Domains(database).get("shop.example")).region == "eu"
    assert "only workers in region eu" in (await visitor.get("/domains/shop.example")).text
    assert "shop.example" in (await visitor.get("/domains?region=eu")).text
    assert "No matching domains" in (await visitor.get("/domains?region=us")).text
    assert "Costs" not in (await visitor.get("/proxies")).text
    where = f"/proxies/{catalog.proxy_id}"
    fields = {"cost": "0.25/request", "currency": "eur", "region": "us"}
    page = await visitor.act(f"{where}/set", fields)
    assert "0.25 EUR/request" in page.text
    assert 'value="0.25/request"' in page.text
    assert (await visitor.act(f"{where}/set", {"cost": HOSTILE})).status == 422
    log = UsageLog(database)
    for host in ("shop.example", "shop.example", HOSTILE):
        log.add(catalog.proxy_id, host, 500)
    await log.run_once()
    bill = (await visitor.get("/proxies")).text
    assert "Costs" in bill
    assert "EUR\N{NO-BREAK SPACE}0.75" in bill
    assert "<script>alert" not in bill
    share = (await visitor.get("/domains/shop.example")).text
    assert "EUR\N{NO-BREAK SPACE}0.50" in share
    taken = await visitor.act(f"{where}/set", {"region": ""})
    assert "unknown" in taken.text


async def test_the_secret_of_a_webhook_is_shown_once(visitor: Visitor, catalog: Catalog) -> None:
    fields = {"url": "https://other.example/hooks", "kind": "product.price_changed"}
    made = await visitor.act("/webhooks", fields)
    secret = made.text.split('id="secret">')[1].split("<")[0]
    assert len(secret) > 16
    for path in ("/webhooks", f"/webhooks/{catalog.webhook_id}"):
        assert secret not in (await visitor.get(path)).text
    assert "product.price_changed" in (await visitor.get("/webhooks")).text
    refused = await visitor.act("/webhooks", {"url": "http://localhost:9/"})
    assert refused.status >= 400
    move = f"/webhooks/{catalog.webhook_id}/move"
    assert "s-disabled" in (await visitor.act(move, {"move": "disable"})).text
    assert (await visitor.act(move, {"move": "retry"})).status == 409


async def test_a_webhook_is_changed_by_its_form(visitor: Visitor, catalog: Catalog) -> None:
    where = f"/webhooks/{catalog.webhook_id}"
    assert 'value="https://receiver.example/hooks"' in (await visitor.get(where)).text
    fields = {"url": "https://moved.example/hooks", "kind": "product.price_changed"}
    changed = await visitor.act(f"{where}/set", fields)
    assert "https://moved.example/hooks" in changed.text
    assert 'value="product.price_changed" checked' in changed.text
    refused = await visitor.act(f"{where}/set", {"url": "http://localhost:9/"})
    assert refused.status == 403
    assert "https://moved.example/hooks" in (await visitor.get(where)).text


async def test_a_refused_webhook_keeps_its_input(visitor: Visitor, catalog: Catalog) -> None:
    fields = {"url": "http://localhost:9/", "kind": "product.price_changed", "domain": "a.example"}
    for where in ("/webhooks", f"/webhooks/{catalog.webhook_id}/set"):
        refused = await visitor.act(where, {**fields, "ordered": "yes"})
        assert refused.status == 403
        assert 'class="notice error" role="alert"' in refused.text
        assert 'value="http://localhost:9/"' in refused.text
        assert 'value="product.price_changed" checked' in refused.text
        assert 'value="a.example"' in refused.text
        assert 'name="ordered" type="checkbox" value="yes" checked' in refused.text


async def test_a_failing_webhook_is_not_active(
    visitor: Visitor, catalog: Catalog, database: Database
) -> None:
    await execute(
        database,
        """
        UPDATE webhooks SET failures = 3, rests_until = now() + interval '5 minutes'
         WHERE id = %s RETURNING 1
        """,
        catalog.webhook_id,
    )
    await execute(
        database,
        """
        INSERT INTO outbox (topic, lane, ref_id, attempts, last_error)
        VALUES ('webhooks', %s, 1, 3, 'the receiver answered 503')
        """,
        catalog.webhook_id,
    )
    for path in ("/webhooks", f"/webhooks/{catalog.webhook_id}"):
        page = (await visitor.get(path)).text
        assert "s-failing" in page
        assert "s-active" not in page
        assert "answered 503" in page
        assert "next attempt" in page.lower()


async def test_parsers_say_what_cannot_be_rolled_back(visitor: Visitor, catalog: Catalog) -> None:
    refused = await visitor.act("/parsers/generic/rollback")
    assert refused.status == 409
    assert "nothing to roll back" in refused.text
    same = {"name": "generic", "version": GENERIC_VERSION, "against": GENERIC_VERSION}
    assert (await visitor.act("/parsers/backtest", same)).status == 422
    unknown = {"name": "none", "against": "1"}
    assert (await visitor.act("/parsers/backtest", unknown)).status == 404


async def test_two_versions_are_compared_tried_and_rolled_out(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    with kiosk_parsers():
        pages = [(number, item(number, was="£9")) for number in (1, 2, 3)]
        await Kiosk(database, web_settings).archive(pages)
        wanted = {"name": "kiosk", "version": "2", "against": "1", "limit": "2"}
        compared = await visitor.act("/parsers/backtest", wanted)
        assert compared.status == 200
        assert "limited to 2; more pages match" in compared.text
        assert "<td>GTIN</td>" not in compared.text
        assert all(field in compared.text for field in ("price", "SKU", "brand"))
        await visitor.act("/parsers/kiosk/rollout", {"version": "1"})
        tried = await visitor.act("/parsers/kiosk/rollout", {"version": "2", "canary": "10"})
        assert "10 % of tasks" in tried.text
        assert "s-canary" not in (await visitor.act("/parsers/kiosk/rollback")).text
        too_much = {**wanted, "limit": "501"}
        assert (await visitor.act("/parsers/backtest", too_much)).status == 422


async def test_a_webhook_gets_a_new_secret_and_is_removed(
    visitor: Visitor, catalog: Catalog
) -> None:
    where = f"/webhooks/{catalog.webhook_id}"
    fields = {"csrf": await visitor.token()}
    rotated = await visitor.post(f"{where}/rotate", fields, allow_redirects=False)
    assert (rotated.status, rotated.headers["Location"]) == (303, f"{where}/secret")
    assert 'id="secret"' in (await visitor.get(f"{where}/secret")).text
    assert 'id="secret"' not in (await visitor.get(f"{where}/secret")).text
    assert "Webhooks" in (await visitor.act(f"{where}/move", {"move": "remove"})).text
    assert (await visitor.get(where)).status == 404


async def test_alert_rules_are_added_refused_and_deleted(
    visitor: Visitor, database: Database
) -> None:
    product_id = await add_product(database, 1)
    fields = {"kind": "price_below", "amount": "40", "currency": "eur", "days": "3"}
    added = await visitor.act("/alerts", {**fields, "product": str(product_id)})
    assert "Price below 40 EUR" in added.text
    hidden = {"percent": "no number", "days": "0"}
    added = await visitor.act("/alerts", {**fields, **hidden})
    assert "Alert added" in added.text
    stock = await visitor.act("/alerts", {**fields, **hidden, "kind": "back_in_stock"})
    assert "Alert added" in stock.text
    for wrong in ({"kind": "nothing"}, {"kind": "price_drop"}, {**fields, "product": "999"}):
        refused = await visitor.act("/alerts", wrong)
        assert refused.status in (404, 422)
        assert "Add alert" in refused.text
    rules = (await list_alerts(database)).items
    assert len(rules) == 3
    for rule in rules:
        await visitor.act(f"/alerts/{rule.id}/delete")
    assert "No alerts yet" in (await visitor.get("/alerts")).text
