"""The pages of the catalogue: what they show, what their forms do, and a browser that uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import expect

from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.db.database import Database
from forager.fetch.domains.service import Domains
from forager.fetch.proxies.costs import UsageLog
from forager.parsers.pattern import GENERIC_VERSION
from forager.products.alerts import list_alerts
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.dead_letters import LetterFilter, count_letters
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.scheduler import Scheduler
from forager.tasks.task import Hold
from images.stored_image import store_image
from parsers.archived_kiosk import Kiosk, item, kiosk_parsers
from products.rows import add_product
from servers.shop import Item, Shop
from tasks.working import Tasks, at_work
from web.browser import LIMIT, PHONE, Tab, open_browser, open_tab
from web.catalog_rows import HOSTILE, Catalogue, fill
from web.visitor import Visitor

NAME = 'Desk lamp "Ada" & sons, 1 < 2'

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def longer_limits() -> None:
    expect.set_options(timeout=LIMIT)


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop().open() as shop:
        yield shop


@pytest.fixture
async def catalogue(database: Database, web_settings: Settings) -> Catalogue:
    return await fill(database, web_settings)


@pytest.fixture
async def workers(database: Database, web_settings: Settings) -> AsyncIterator[Tasks]:
    """A scheduler and a worker."""
    quick = {"images": False, "scheduler_interval": 0.1}
    settings = Settings(**(web_settings.model_dump() | quick))
    tasks = Tasks(database, settings)
    async with running([Scheduler(database, settings).service()]), at_work(tasks):
        yield tasks


# --- in a browser ------------------------------------------------------------------------------


async def test_a_product_is_tracked_arrives_and_its_price_is_drawn(
    tab: Tab, workers: Tasks, shop: Shop
) -> None:
    url = shop.add("lamp", Item(NAME, price="49.00", sku="ADA-1"))
    await tab.go("/products")
    await tab.page.get_by_role("link", name="Track a product").first.click()
    await tab.page.get_by_label("Product page URLs").fill(url)
    await tab.page.get_by_label("Recrawl interval").fill("1d")
    await tab.page.get_by_label("Allow private").check()
    await tab.page.get_by_role("button", name="Track").click()
    await tab.page.wait_for_url("**/tasks/*")
    await expect(tab.page.locator("h1 .badge")).to_have_text("completed")
    await tab.page.get_by_role("link", name="View product").click()
    await expect(tab.page.get_by_role("heading", level=1)).to_have_text(NAME)
    await expect(tab.page.locator("#live_price title")).to_have_count(1)
    await expect(tab.page.locator("#live_fields")).to_contain_text("json-ld")

    shop.change("lamp", price="39.50", in_stock=False)
    await tab.page.get_by_role("button", name="Recrawl now").click()
    await expect(tab.page.locator("#live_price title")).to_have_count(2)
    titles = await tab.page.locator("#live_price title").all_text_contents()
    assert ["49.00" in titles[0], "39.50" in titles[1]] == [True, True]
    assert "out of stock" in titles[1]
    points = await tab.page.locator("#live_price polyline").get_attribute("points") or ""
    assert len({point.split(",")[1] for point in points.split()}) == 2
    await expect(tab.page.locator("#live_history tbody tr")).to_have_count(2)
    await expect(tab.page.locator("#live_history")).to_contain_text("-19.4 %")

    await tab.go("/products?q=lamp&max_price=40&availability=out_of_stock")
    await expect(tab.page.locator("tbody tr")).to_have_count(1)


async def test_a_task_is_paused_with_the_keyboard_and_says_why_it_waits(
    tab: Tab, catalogue: Catalogue, database: Database
) -> None:
    await tab.go("/tasks")
    await tab.tab_to("Select task")
    await tab.press("Space")
    await expect(tab.page.locator("[data-count]")).to_have_text("1 selected")
    await tab.page.get_by_role("button", name="Pause", exact=True).focus()
    await tab.press("Enter")
    row = tab.page.locator(f"#t-{catalogue.task_id}")
    await expect(row).to_contain_text("paused")
    await row.get_by_role("link").press("Enter")
    await tab.page.wait_for_url("**/tasks/*")
    await tab.page.get_by_role("button", name="Recrawl now").press("Enter")
    await expect(tab.page.locator("#live_head")).to_contain_text("it is paused")
    await tab.page.get_by_role("button", name="Resume").press("Enter")
    await expect(tab.page.locator("h1")).not_to_contain_text("paused")


async def test_hidden_fields_of_a_condition_do_not_keep_an_alert_from_being_added(
    tab: Tab, database: Database
) -> None:
    await tab.go("/alerts")
    await tab.page.get_by_label("Condition").select_option("price_drop")
    await tab.page.get_by_label("Percent").fill("500")
    await tab.page.get_by_label("Condition").select_option("price_below")
    await expect(tab.page.locator("[name=percent]")).to_be_disabled()
    await tab.page.get_by_label("Amount").fill("40")
    await tab.page.get_by_role("button", name="Add alert").click()
    await expect(tab.page.locator("#live_rules tbody tr")).to_have_count(1)
    await tab.page.get_by_label("Condition").select_option("back_in_stock")
    await expect(tab.page.locator("[name=currency]")).to_be_disabled()
    await tab.page.get_by_label("Condition").select_option("price_drop")
    await expect(tab.page.locator("[name=percent]")).to_be_enabled()


async def test_no_page_of_the_catalogue_complains_or_is_wider_than_the_screen(
    address: str, catalogue: Catalogue
) -> None:
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=PHONE)
        for path in catalogue.pages():
            await tab.go(path)
            assert (path, await tab.overflow()) == (path, 0)
            assert (path, tab.complaints) == (path, [])


# --- through HTTP ------------------------------------------------------------------------------


async def test_what_shops_say_is_shown_as_text(visitor: Visitor, catalogue: Catalogue) -> None:
    for path in catalogue.pages():
        page = await visitor.get(path)
        assert (path, page.status) == (path, 200)
        assert "<script>alert" not in page.text
        assert "onerror=alert(2)>" not in page.text
        assert " style=" not in page.text


@pytest.mark.parametrize("text", [HOSTILE, "' OR 1=1 --", "\0", "x" * 3000, "1e999"])
async def test_filters_take_whatever_is_typed(
    visitor: Visitor, catalogue: Catalogue, text: str
) -> None:
    for path, names in {
        "/products": ["q", "min_price", "brand", "category", "domain", "changed_since", "cursor"],
        "/tasks": ["url", "domain", "status", "cursor"],
        "/errors": ["domain", "type", "hours", "cursor"],
        "/errors/list": ["message", "task"],
        "/dead-letters": ["cause", "domain"],
        "/domains": ["active", "region", "cursor"],
        "/proxies": ["cursor"],
        "/parsers": ["domain", "cursor"],
        "/webhooks": ["cursor"],
        "/track": ["url"],
    }.items():
        for name in names:
            page = await visitor.get(path, params={name: text})
            assert (path, name, page.status in (200, 404, 422)) == (path, name, True)
            assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "path",
    ["/products/9", "/products/x", "/tasks/9", "/errors/9", "/domains/no.example", "/proxies/9"],
)
async def test_what_is_not_there_has_a_page(visitor: Visitor, path: str) -> None:
    page = await visitor.get(path)
    assert page.status in (404, 422)
    assert "Go to overview" in page.text


async def test_empty_pages_say_what_to_do(visitor: Visitor) -> None:
    for path, words in {
        "/products": "Track a product",
        "/tasks": "Track products",
        "/errors": "No permanently failed tasks",
        "/domains": "Add a domain",
        "/proxies": "Add a proxy",
        "/parsers": "No pages parsed yet",
        "/webhooks": "Add a webhook",
    }.items():
        assert words in (await visitor.get(path)).text


async def test_an_image_is_shown_and_nothing_more(visitor: Visitor, catalogue: Catalogue) -> None:
    where = f"/products/{catalogue.product_id}/images"
    async with visitor.session.get(f"{where}/0") as found:
        assert (found.status, found.headers["Content-Type"]) == (200, "image/gif")
        assert "sandbox" in found.headers["Content-Security-Policy"]
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        etag = found.headers["ETag"]
    async with visitor.session.get(f"{where}/0", headers={"If-None-Match": etag}) as same:
        assert same.status == 304
    assert (await visitor.get(f"{where}/1")).status == 404


async def test_products_are_downloaded_as_they_are_filtered(
    visitor: Visitor, catalogue: Catalogue
) -> None:
    found = await visitor.get("/products/export", params={"domain": "shop.example"})
    assert found.status == 200
    assert "attachment" in found.headers["Content-Disposition"]
    assert found.text.count("https://shop.example/p/1") == 1


async def test_scopes_hold_for_the_catalogue(
    visitor: Visitor, database: Database, catalogue: Catalogue
) -> None:
    reader = (await create_key(database, "reader", scope=Scope.READ)).text
    await visitor.sign_in(reader)
    for path in ("/products", "/tasks", "/errors", "/parsers", f"/products/{catalogue.product_id}"):
        page = await visitor.get(path)
        assert page.status == 200
        assert "hx-confirm" not in page.text
    for path in ("/domains", "/proxies", "/webhooks", "/track"):
        assert (await visitor.get(path)).status == 403
    for path in ("/track", "/tasks/move", "/dead-letters/resolve"):
        assert (await visitor.act(path, {"move": "stop", "which": "all"})).status == 403
    operator = (await create_key(database, "operator", scope=Scope.OPERATE)).text
    await visitor.sign_in(operator)
    assert (await visitor.get("/proxies")).status == 200
    refused = [
        await visitor.act("/proxies", {"url": "http://proxy.example:1"}),
        await visitor.act(f"/proxies/{catalogue.proxy_id}/move", {"move": "remove"}),
        await visitor.act("/domains/shop.example/set", {"delay": "1"}),
        await visitor.act("/webhooks", {"url": "https://a.example/"}),
        await visitor.act("/parsers/generic/rollout", {"version": "2"}),
        await visitor.act("/track", {"urls": "http://10.0.0.1/", "allow_private": "yes"}),
    ]
    assert [answer.status for answer in refused] == [403] * len(refused)


async def test_nothing_ticked_moves_nothing(
    visitor: Visitor, database: Database, catalogue: Catalogue, web_settings: Settings
) -> None:
    for which in ("ticked", "fitting", "domain", ""):
        moved = await visitor.act("/tasks/move", {"move": "stop", "which": which})
        assert moved.status == 422
        resolved = await visitor.act("/dead-letters/resolve", {"move": "drop", "which": which})
        assert resolved.status == 422
    assert (await visitor.act("/tasks/move", {"move": "remove", "which": "all"})).status == 422
    assert await count_letters(database, LetterFilter()) == 1


async def test_tasks_are_held_all_by_domain_and_one_by_one(
    visitor: Visitor, database: Database, catalogue: Catalogue
) -> None:
    await visitor.act("/tasks/move", {"move": "stop", "which": "all"})
    assert "All tasks are stopped" in (await visitor.get("/tasks")).text
    await visitor.act("/tasks/move", {"move": "resume", "which": "all"})
    fields = {"move": "pause", "which": "fitting", "domain": "shop.example"}
    await visitor.act("/tasks/move", fields)
    assert (await Domains(database).get("shop.example")).task_hold == Hold.PAUSED
    await visitor.act("/domains/shop.example/hold", {"move": "resume"})
    assert (await Domains(database).get("shop.example")).task_hold is None
    done = await visitor.act(f"/tasks/{catalogue.task_id}/move", {"move": "pause"})
    assert "s-paused" in done.text


async def test_dead_letters_are_tried_again_by_cause(
    visitor: Visitor, database: Database, catalogue: Catalogue
) -> None:
    fields = {"move": "retry", "which": "cause", "cause": "parse", "domain": "shop.example"}
    await visitor.act("/dead-letters/resolve", fields)
    assert await count_letters(database, LetterFilter()) == 0
    page = await visitor.get(f"/tasks/{catalogue.task_id}")
    assert f"s-{TaskStatus.PENDING}" in page.text


async def test_a_domain_is_changed_and_its_settings_taken_back(
    visitor: Visitor, database: Database, catalogue: Catalogue
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
    visitor: Visitor, catalogue: Catalogue
) -> None:
    page = await visitor.get("/proxies")
    assert "somebody:***@proxy.example:3128" in page.text
    assert "secret" not in page.text
    move = f"/proxies/{catalogue.proxy_id}/move"
    assert "s-disabled" in (await visitor.act(move, {"move": "disable"})).text
    assert "s-disabled" not in (await visitor.act(move, {"move": "enable"})).text
    assert "No proxies" in (await visitor.act(move, {"move": "remove"})).text
    assert (await visitor.act("/proxies", {"url": "http://127.0.0.1:1"})).status >= 400


async def test_regions_and_costs_are_set_and_shown(
    visitor: Visitor, database: Database, catalogue: Catalogue
) -> None:
    await visitor.act("/domains/shop.example/set", {"active": "yes", "region": "eu"})
    assert (await Domains(database).get("shop.example")).region == "eu"
    assert "only workers in region eu" in (await visitor.get("/domains/shop.example")).text
    assert "shop.example" in (await visitor.get("/domains?region=eu")).text
    assert "No matching domains" in (await visitor.get("/domains?region=us")).text
    assert "Costs" not in (await visitor.get("/proxies")).text
    where = f"/proxies/{catalogue.proxy_id}"
    fields = {"cost": "0.25/request", "currency": "eur", "region": "us"}
    page = await visitor.act(f"{where}/set", fields)
    assert "0.25 EUR/request" in page.text
    assert 'value="0.25/request"' in page.text
    assert (await visitor.act(f"{where}/set", {"cost": HOSTILE})).status == 422
    log = UsageLog(database)
    for host in ("shop.example", "shop.example", HOSTILE):
        log.add(catalogue.proxy_id, host, 500)
    await log.run_once()
    bill = (await visitor.get("/proxies")).text
    assert "Costs" in bill
    assert "EUR\N{NO-BREAK SPACE}0.75" in bill
    assert "<script>alert" not in bill
    share = (await visitor.get("/domains/shop.example")).text
    assert "EUR\N{NO-BREAK SPACE}0.50" in share
    taken = await visitor.act(f"{where}/set", {"region": ""})
    assert "unknown" in taken.text


async def test_the_secret_of_a_webhook_is_shown_once(
    visitor: Visitor, catalogue: Catalogue
) -> None:
    fields = {"url": "https://other.example/hooks", "kind": "product.price_changed"}
    made = await visitor.act("/webhooks", fields)
    secret = made.text.split('id="secret">')[1].split("<")[0]
    assert len(secret) > 16
    for path in ("/webhooks", f"/webhooks/{catalogue.webhook_id}"):
        assert secret not in (await visitor.get(path)).text
    assert "product.price_changed" in (await visitor.get("/webhooks")).text
    refused = await visitor.act("/webhooks", {"url": "http://localhost:9/"})
    assert refused.status >= 400
    move = f"/webhooks/{catalogue.webhook_id}/move"
    assert "s-disabled" in (await visitor.act(move, {"move": "disable"})).text
    assert (await visitor.act(move, {"move": "retry"})).status == 409


async def test_a_webhook_is_changed_by_its_form(visitor: Visitor, catalogue: Catalogue) -> None:
    where = f"/webhooks/{catalogue.webhook_id}"
    assert 'value="https://receiver.example/hooks"' in (await visitor.get(where)).text
    fields = {"url": "https://moved.example/hooks", "kind": "product.price_changed"}
    changed = await visitor.act(f"{where}/set", fields)
    assert "https://moved.example/hooks" in changed.text
    assert 'value="product.price_changed" checked' in changed.text
    refused = await visitor.act(f"{where}/set", {"url": "http://localhost:9/"})
    assert refused.status == 403
    assert "https://moved.example/hooks" in (await visitor.get(where)).text


async def test_parsers_say_what_cannot_be_rolled_back(
    visitor: Visitor, catalogue: Catalogue
) -> None:
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
    visitor: Visitor, catalogue: Catalogue
) -> None:
    where = f"/webhooks/{catalogue.webhook_id}"
    rotated = await visitor.act(f"{where}/rotate")
    assert 'id="secret"' in rotated.text
    assert "Webhooks" in (await visitor.act(f"{where}/move", {"move": "remove"})).text
    assert (await visitor.get(where)).status == 404


async def test_addresses_are_tracked_and_the_bad_ones_named(
    visitor: Visitor, database: Database
) -> None:
    lines = "https://a.example/p/1\nnonsense\nhttps://a.example/p/2\n"
    done = await visitor.act("/track", {"urls": lines, "every": "6h", "priority": "2"})
    assert "Tracking 2 new pages" in done.text
    assert "1 line rejected; first: nonsense" in done.text
    none = await visitor.act("/track", {"urls": "http://10.0.0.1/p"})
    assert none.status == 422
    assert (await visitor.act("/track", {"urls": "https://b.example/", "every": "x"})).status == 422


async def test_products_have_thumbnails_and_trends_and_are_sorted(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    first, second = [await add_product(database, number) for number in (1, 2)]
    await store_image(database, web_settings, first)
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO price_history (product_id, price, currency, recorded_at)"
            " SELECT %s, price * 2, currency, now() - interval '1 day' FROM products WHERE id = %s",
            (first, first),
        )
        await connection.execute("UPDATE products SET price = 1 WHERE id = %s", (second,))
    page = (await visitor.get("/products?sort=price")).text
    assert page.index(f'id="p-{second}"') < page.index(f'id="p-{first}"')
    assert 'aria-sort="ascending"' in page
    assert f'<img src="/products/{first}/images/0"' in page
    assert "-50 %" in page
    assert "Last prices of" in page


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
