"""The pages of products in a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

from forager.db.database import Database
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.scheduler import Scheduler
from servers.shop import Item, Shop
from tasks.working import Tasks, at_work
from web.browser import PHONE, Tab, open_browser, open_tab
from web.catalog_rows import Catalog

NAME = 'Desk lamp "Ada" & sons, 1 < 2'
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
async def workers(database: Database, web_settings: Settings) -> AsyncIterator[Tasks]:
    """A scheduler and a worker."""
    quick = {"images": False, "scheduler_interval": 0.1}
    settings = Settings(**(web_settings.model_dump() | quick))
    tasks = Tasks(database, settings)
    async with running([Scheduler(database, settings).service()]), at_work(tasks):
        yield tasks


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
    tab: Tab, catalog: Catalog, database: Database
) -> None:
    await tab.go("/tasks")
    await tab.tab_to("Select task")
    await tab.press("Space")
    await expect(tab.page.locator("[data-count]")).to_have_text("1 selected")
    await tab.page.get_by_role("button", name="Pause", exact=True).focus()
    await tab.press("Enter")
    row = tab.page.locator(f"#t-{catalog.task_id}")
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


async def test_no_page_of_the_catalog_complains_or_is_wider_than_the_screen(
    address: str, catalog: Catalog
) -> None:
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=PHONE)
        for path in catalog.pages():
            await tab.go(path)
            assert (path, await tab.overflow()) == (path, 0)
            assert (path, tab.complaints) == (path, [])


async def test_an_error_of_a_form_is_shown_in_the_form_with_its_input(
    tab: Tab, catalog: Catalog
) -> None:
    await tab.go("/track")
    form = tab.page.locator("form[action='/track']")
    await form.locator("[name=urls]").fill("ftp://shop.example/lamp")
    for _ in range(2):
        await form.get_by_role("button", name="Track").click()
        await expect(form.get_by_role("alert")).to_have_count(1)
    await expect(form.locator("[name=urls]")).to_have_value("ftp://shop.example/lamp")
    await expect(tab.page.locator("#notices .notice")).to_have_count(0)
    tab.complaints.clear()  # the browser reports the status of the response


async def test_actions_for_many_rows_are_shown_while_rows_are_ticked(
    tab: Tab, catalog: Catalog
) -> None:
    await tab.go("/tasks")
    actions = tab.page.get_by_role("group", name="Actions for the selected tasks")
    await expect(actions).to_be_hidden()
    await tab.page.locator("tbody input[type=checkbox]").first.check()
    await expect(actions).to_be_visible()
