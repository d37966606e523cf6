"""Lists: rows that stay in place, the way back, and what the palette does."""

from __future__ import annotations

from playwright.async_api import expect

from crawl.crawling import Crawls
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.service import NewWebhook, Webhooks
from servers.site import Site, html
from support.sql import execute
from web.browser import PHONE, Tab, open_browser, open_tab
from web.visitor import Visitor


async def test_new_rows_wait_until_they_are_asked_for(tab: Tab, queue: Queue) -> None:
    first = (await queue.enqueue(NewJob(kind="selftest"))).job
    await tab.go("/jobs")
    rows = tab.page.locator("#live_jobs tbody tr")
    await expect(rows).to_have_count(1)
    await expect(tab.page.locator("#live-words")).to_contain_text("Live")
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(2)])
    await queue.pause(first.id)
    await expect(tab.page.get_by_role("button", name="2 new")).to_be_visible()
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text("paused")
    await tab.page.get_by_role("button", name="2 new").click()
    await expect(rows).to_have_count(3)
    await expect(tab.page.locator(".pill")).to_have_count(0)
    # a list on one page is sorted by its headings, and stays so when it is updated
    heading = tab.page.locator("#live_jobs th", has_text="Status")
    for statuses in (["paused", "pending", "pending"], ["pending", "pending", "paused"]):
        await heading.click()
        await expect(rows.locator("td[data-name=Status]")).to_have_text(statuses)
    await queue.resume(first.id)
    await queue.pause((await queue.list_jobs(limit=1)).items[0].id)
    await expect(rows.nth(2)).to_contain_text("paused")
    await expect(rows.nth(2)).not_to_have_id(f"j-{first.id}")
    await expect(heading).to_have_attribute("aria-sort", "descending")


async def test_a_list_leads_to_its_previous_page(tab: Tab, queue: Queue) -> None:
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(120)])
    await tab.go("/jobs")
    first = await tab.page.locator("#live_jobs tbody tr").first.get_attribute("id")
    for _ in range(2):
        await tab.page.get_by_role("link", name="Next", exact=True).click()
        await tab.page.wait_for_url("**cursor=**")
        await expect(tab.page.locator(f"#{first}")).to_have_count(0)
    await expect(tab.page.locator("#live_jobs tbody tr")).to_have_count(20)
    await tab.page.get_by_role("link", name="Previous", exact=True).click()
    await expect(tab.page.locator("#live_jobs tbody tr")).to_have_count(50)
    await expect(tab.page.locator(f"#{first}")).to_have_count(0)
    await tab.page.get_by_role("link", name="First page").click()
    await expect(tab.page.locator(f"#{first}")).to_have_count(1)


async def test_the_palette_acts(tab: Tab, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="manual"))).job
    await tab.go("/")
    await tab.press("Control+k")
    await tab.page.locator("#palette-query").fill("manual")
    await tab.page.get_by_role("option", name="Pause job of manual").click()
    await expect(tab.page.locator("#notices")).to_contain_text("manual is paused now")
    assert (await queue.get(job.id)).status is Status.PAUSED


async def test_lists_begin_on_the_first_screen_of_a_phone(
    address: str, queue: Queue, database: Database
) -> None:
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(3)])
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=PHONE)
        await tab.go("/jobs")
        row = tab.page.locator("#live_jobs tbody tr").first
        box = await row.bounding_box()
        assert box is not None
        assert box["y"] < 400
        await expect(tab.page.get_by_label("Host")).to_be_hidden()
        await tab.page.get_by_role("button", name="Filters").click()
        await expect(tab.page.get_by_label("Host")).to_be_visible()


async def test_a_job_shows_its_responses_by_status_and_type(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    site = Site({"/": html("Home", ("/a", "/gone")), "/a": html("a")})
    with site.served():
        crawled = await Crawls(database, web_settings).run(site.url, source="docs", delay=0)
    page = (await visitor.get(f"/jobs/{crawled.job.id}")).text
    for status in (200, 404):
        assert f'href="/jobs/{crawled.job.id}/pages?status={status}"' in page
    assert "<td>text/html</td>" in page


async def test_a_webhook_shows_its_failure_rate(
    visitor: Visitor, database: Database, web_settings: Settings
) -> None:
    webhooks = Webhooks(database, Vault(web_settings))
    made = (await webhooks.add(NewWebhook(url="https://hooks.example/"))).webhook
    await execute(
        database,
        """
        INSERT INTO outbox (topic, ref_id, lane, attempts, sent_at)
        SELECT 'webhooks', n, %s, 1, CASE WHEN n <= 3 THEN now() END FROM generate_series(1, 4) n
        """,
        made.id,
    )
    found = await webhooks.get(made.id)
    assert (found.recent_messages, found.recent_failures) == (4, 1)
    assert "25 %" in (await visitor.get("/webhooks")).text
