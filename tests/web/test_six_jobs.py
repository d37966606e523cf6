"""The six everyday jobs in a browser, with the number of clicks that each takes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.async_api import Locator, expect

from built_site import SOURCE, Crawls
from crawl.crawling import Crawls as SiteCrawls
from forager.access.caller import Scope, Visibility
from forager.access.keys import list_keys
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.settings import Settings
from products.rows import add_product
from servers.site import Site, html, text
from support.sql import execute
from web.browser import Tab

pytestmark = pytest.mark.timeout(300)


@dataclass(slots=True)
class Person:
    """Clicks and keys of a person, counted."""

    tab: Tab
    clicks: int = 0

    async def click(self, target: Locator) -> None:
        self.clicks += 1
        await target.click()

    def button(self, name: str) -> Locator:
        return self.tab.page.get_by_role("button", name=name).first

    def link(self, name: str) -> Locator:
        return self.tab.page.get_by_role("link", name=name).first


@pytest.fixture
def web_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0, "log_level": "warning"})


@pytest.fixture
def person(tab: Tab) -> Person:
    return Person(tab)


async def test_a_first_site_takes_two_clicks_and_a_private_one_the_box(
    person: Person, worker: Supervisor
) -> None:
    site = Site({"/": html("Home", ("/guide",)), "/guide": html("Guide")})
    with site.served():
        site.pages["/robots.txt"] = text(f"Sitemap: {site.url}/missing.xml")
        await person.tab.go("/")
        await person.tab.page.get_by_label("URL", exact=True).fill(site.url)
        await person.click(person.button("Start crawl"))
        box = person.tab.page.get_by_label("Allow private")
        await expect(person.tab.page.locator(".field-error")).to_contain_text("private")
        await person.click(box)
        await person.click(person.button("Start crawl"))
        await person.tab.page.wait_for_url("**/jobs/*")
        await expect(person.tab.page.locator("h1 .badge").first).to_have_text("completed")
        runner = person.tab.page.locator("#live_runner")
        await expect(runner).to_contain_text("sitemap cannot be read")
    assert person.clicks == 3
    person.tab.complaints = [each for each in person.tab.complaints if "status of" not in each]


async def test_why_a_page_is_missing_takes_no_click(
    person: Person, database: Database, web_settings: Settings
) -> None:
    site = Site({"/": html("Home", ("/a", "/b", "/c")), **{f"/{n}": html(n) for n in "abc"}})
    crawls = SiteCrawls(database, web_settings)
    with site.served():
        await crawls.run(site.url, source="docs", delay=0)
        site.pages = {"/": html("Home", ("/a",)), "/a": html("a")}
        await crawls.run(site.url, source="docs", delay=0)  # held back: most pages are gone
        await person.tab.go("/")
        await person.tab.press("Control+k")
        await person.tab.page.locator("#palette-query").fill(f"{site.url}/a")
        await person.tab.press("Enter")
        await expect(person.tab.page.locator("main")).to_contain_text("Published since")
        assert person.clicks == 0
        await expect(person.button("Fetch now")).to_be_visible()
        await expect(person.link("Read the last good version")).to_be_visible()
        await person.click(person.button("Publish anyway"))
        await person.click(person.tab.page.locator("#confirm-yes"))
        await expect(person.tab.page.locator("#notices")).to_contain_text("is now published")


async def test_two_generations_are_compared_and_rolled_back(person: Person, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha", "b": "beta", "c": "same"})
    await crawls.crawl({"a": "ALPHA", "b": "BETA", "c": "same", "d": "new"})
    await person.tab.go(f"/sources/{SOURCE}")
    await person.click(person.tab.page.get_by_role("link", name="Changes", exact=True))
    changed = person.tab.page.get_by_role("navigation", name="Changed pages")
    await expect(changed).to_contain_text("2 pages changed")
    await expect(changed.locator(".plus").first).to_have_text("+2")
    page = person.tab.page.locator(".compared")
    await expect(page.locator("ins").first).to_contain_text("ALPHA")
    await expect(page.locator("del").first).to_contain_text("alpha")
    await person.click(changed.get_by_role("link", name="BETA"))
    await expect(page.locator("ins").first).to_contain_text("BETA")
    await person.click(person.button("Roll back"))
    question = person.tab.page.locator("#confirm-question")
    await expect(question).to_contain_text("Readers will see generation 1 of")
    await expect(question).to_contain_text("2 pages revert, 1 page goes")
    await person.click(person.tab.page.locator("#confirm-yes"))
    await expect(person.tab.page.locator("#notices")).to_contain_text("is published again")
    assert person.clicks == 4


async def test_the_largest_price_drops_are_on_the_overview(
    person: Person, database: Database
) -> None:
    for number, price in ((1, 8), (2, 5), (3, 12)):
        product_id = await add_product(database, number)
        await execute(
            database,
            """
            UPDATE price_history SET recorded_at = now() - interval '10 days', price = 10
             WHERE product_id = %s
            """,
            product_id,
        )
        await execute(
            database,
            """
            WITH moved AS (
                UPDATE products SET price = %s, price_changed_at = now(), brand = 'Acme'
                 WHERE id = %s RETURNING id, price, currency
            )
            INSERT INTO price_history (product_id, price, currency)
            SELECT id, price, currency FROM moved
            """,
            price,
            product_id,
        )
    await person.tab.go("/")
    rows = person.tab.page.locator("#live_drops tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("-50 %")
    await person.click(person.link("All price changes"))
    await person.tab.page.get_by_label("Brand").fill("acme")
    await person.click(person.button("Show"))
    await expect(person.tab.page.locator("#live_prices tbody tr")).to_have_count(2)
    await person.click(person.link("Alert me on these"))
    await expect(person.tab.page.get_by_label("Brand")).to_have_value("acme")
    await person.click(person.button("Add alert"))
    await expect(person.tab.page.locator("#live_rules")).to_contain_text("10")
    assert person.clicks == 4


async def test_a_sick_host_is_paused_by_one_switch(
    person: Person, database: Database, queue: Queue
) -> None:
    await add_product(database, 1)
    payload = {"urls": ["https://shop.example/"]}
    job = (await queue.enqueue(NewJob(kind="crawl", payload=payload, source_id="shop"))).job
    await execute(
        database,
        """
        INSERT INTO host_minutes (domain_id, at, requests, redirects, client_errors, server_errors,
                                  unanswered, seconds, delay)
        SELECT id, now() - interval '10 min', 10, 0, 1, 4, 2, 8, 1.5 FROM domains
        """,
    )
    await person.tab.go("/domains/shop.example")
    await expect(person.tab.page.locator("#live_history")).to_contain_text("10 in 6 h, 7 failed")
    await expect(person.tab.page.locator("#live_work")).to_contain_text("shop")
    await person.click(person.button("Pause"))
    await expect(person.tab.page.locator("h1")).to_contain_text("paused")
    assert person.clicks == 1
    assert (await queue.get(job.id)).status is Status.PAUSED
    await person.tab.go("/")
    attention = person.tab.page.locator("#live_attention")
    await expect(attention).to_contain_text("shop.example is paused")
    await person.click(attention.get_by_role("link", name="View").first)
    await person.click(person.button("Resume"))
    await expect(person.tab.page.locator("h1")).not_to_contain_text("paused")
    assert (await queue.get(job.id)).status is Status.PENDING


async def test_a_read_only_key_is_made_once(
    person: Person, database: Database, admin_key: str
) -> None:
    page = person.tab.page
    await person.tab.go("/keys")
    await page.get_by_label("API key").fill(admin_key)
    await person.tab.press("Enter")
    await page.get_by_label("Name").fill("colleague")
    await page.get_by_label("Scope").select_option("read")
    await page.get_by_label("Sees").select_option("everything")
    await person.click(person.button("Create key"))
    await expect(page.locator("#secret")).to_contain_text("fgr_")
    await page.reload()
    made = [each for each in (await list_keys(database)).items if each.name == "colleague"]
    assert [(each.scope, each.visibility) for each in made] == [(Scope.READ, Visibility.EVERYTHING)]
    assert person.clicks == 1
