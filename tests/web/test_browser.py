"""The dashboard as a person uses it: in a real browser, with a mouse, a keyboard or a phone."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from built_site import SOURCE, Crawls
from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.jobs.supervisor import Supervisor
from forager.web.routes import new_crawl
from web.browser import PHONE, Tab, open_browser, open_tab

pytestmark = pytest.mark.timeout(600)

# the page's body shows when its stream reported a cancelled job
REPORTS_CANCELLED = """
window.EventSource = class extends EventSource {
  constructor(url) {
    super(url);
    this.addEventListener("part", (event) => {
      if (event.data.includes("canceled")) document.body.dataset.reported = "canceled";
    });
  }
};
"""


async def test_a_person_signs_in_and_out(tab: Tab, admin_key: str) -> None:
    await tab.go("/jobs")
    await tab.page.get_by_label("API key").fill("fgr_wrong")
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(tab.page.get_by_role("alert")).to_contain_text("not an API key")
    await tab.page.get_by_label("API key").fill(admin_key)
    await tab.page.get_by_role("button", name="Sign in").click()
    await expect(tab.page.get_by_role("heading", name="Jobs")).to_be_visible()
    await tab.page.get_by_role("button", name="Sign out").click()
    await expect(tab.page.get_by_label("API key")).to_be_visible()
    # the browser itself says so of an answer 401
    tab.complaints = [said for said in tab.complaints if "401" not in said]


async def test_a_crawl_is_started_watched_paused_resumed_and_searched(
    tab: Tab, worker: Supervisor, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a busy machine, the click on Pause comes late
    monkeypatch.setattr(new_crawl, "DELAY", 2.0)
    await tab.go("/")
    await tab.page.get_by_role("button", name="Crawl the demo site").click()
    await tab.page.wait_for_url("**/jobs/*")
    badge = tab.page.locator("h1 .badge")
    await expect(badge).to_have_text("processing")
    fetched = tab.page.locator("#live_ledger .legend li").first
    await expect(fetched).not_to_have_text("fetched 0")
    await tab.page.get_by_role("button", name="Pause").click()
    await expect(badge).to_have_text("paused")
    await tab.page.get_by_role("button", name="Resume").click()
    await expect(badge).to_have_text("completed")
    await expect(tab.page.locator("#live_progress strong")).to_have_text("100 %")
    [job] = (await queue.list_jobs()).items
    moves = [event.move for event in await queue.events(job.id)]
    assert [m for m in moves if m in ("pause", "park", "resume")] == ["pause", "park", "resume"]

    await tab.page.get_by_role("link", name="Search").first.click()
    await tab.page.get_by_label("Search published pages").fill("ledger")
    await expect(tab.page.locator("mark").first).to_have_text("ledger")
    await tab.page.locator(".hit a").first.click()
    await expect(tab.page.locator(".section-found")).to_be_visible()


async def test_a_generation_is_rolled_back_after_a_question(tab: Tab, crawls: Crawls) -> None:
    await crawls.crawl({"a": "alpha"})
    await crawls.crawl({"a": "ALPHA"})
    await tab.go(f"/sources/{SOURCE}")
    second, first = tab.page.locator("tr#g-2 .badge"), tab.page.locator("tr#g-1 .badge")
    await expect(second).to_have_text("published")
    await tab.page.get_by_role("button", name="Publish generation 1").click()
    await tab.page.get_by_role("button", name="Cancel", exact=True).click()
    await expect(second).to_have_text("published")
    await tab.page.get_by_role("button", name="Publish generation 1").click()
    await tab.page.locator("#confirm-yes").click()
    await expect(first).to_have_text("published")
    await expect(second).to_have_text("superseded")
    await expect(tab.page.locator("#notices")).to_contain_text("Generation 1 is published again")


async def test_what_others_do_arrives_without_a_reload(tab: Tab, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    await tab.go("/jobs")
    box = tab.page.get_by_label("Select the job of one.example")
    await box.check()
    await expect(tab.page.locator("[data-count]")).to_have_text("1 selected")
    await queue.cancel(job.id)
    await expect(tab.page.locator(f"#j-{job.id} .badge")).to_have_text("canceled")
    # what a person ticked stays ticked
    await expect(box).to_be_checked()


async def test_a_hidden_tab_has_no_stream_and_a_lost_connection_is_shown(
    address: str, queue: Queue, crawls: Crawls
) -> None:
    async with open_browser() as browser:
        tab, context = await open_tab(browser, address)
        await tab.go("/jobs")
        state = tab.page.locator("#live-state")
        await expect(state).to_contain_text("Live, as of")
        await context.set_offline(True)
        await tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(state).to_contain_text("Not live")
        await context.set_offline(False)
        await expect(state).to_contain_text("Live, as of")
        ended: asyncio.Queue[str] = asyncio.Queue()
        tab.page.on("requestfinished", lambda request: ended.put_nowait(request.url))
        tab.page.on("requestfailed", lambda request: ended.put_nowait(request.url))
        await tab.page.evaluate(
            "Object.defineProperty(document, 'hidden', {value: true});"
            " document.dispatchEvent(new Event('visibilitychange'))"
        )
        async with asyncio.timeout(60):
            assert (await ended.get()).endswith("/jobs")


async def test_the_keyboard_is_enough(tab: Tab, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    await tab.go("/")
    await tab.press("Tab")
    assert "Skip to content" in await tab.focused()
    await tab.press("Enter")
    await tab.tab_to("All jobs")
    await tab.press("Enter")
    await tab.page.wait_for_url("**/jobs")
    await tab.tab_to("one.example")
    if "Select" in await tab.focused():
        await tab.tab_to("one.example")
    await tab.press("Enter")
    await tab.page.wait_for_url(f"**/jobs/{job.id}")
    await tab.tab_to("Cancel")
    await tab.press("Enter")
    await expect(tab.page.get_by_role("dialog")).to_be_visible()
    await tab.press("Escape")
    await expect(tab.page.get_by_role("dialog")).to_be_hidden()
    assert (await queue.get(job.id)).status is Status.PENDING
    assert "Cancel" in await tab.focused()
    await tab.press("Enter")
    await expect(tab.page.get_by_role("dialog")).to_be_visible()
    await tab.tab_to("confirm-yes")
    await tab.press("Enter")
    await expect(tab.page.locator("h1 .badge")).to_have_text("canceled")


async def test_the_palette_leads_to_pages_and_searches(tab: Tab) -> None:
    await tab.go("/jobs")
    await tab.press("Control+k")
    await tab.page.keyboard.type("sourc")
    await expect(tab.page.locator("#palette-list li").first).to_have_text("Sources")
    await tab.press("Enter")
    await tab.page.wait_for_url("**/sources")
    await tab.press("Control+k")
    await tab.page.keyboard.type("two words")
    await tab.press("Enter")
    await tab.page.wait_for_url("**/search?q=two%20words")
    await tab.page.evaluate("document.activeElement.blur()")
    await tab.press("/")
    await expect(tab.page.get_by_label("Search published pages")).to_be_focused()
    await tab.page.evaluate("document.activeElement.blur()")
    await tab.press("?")
    await expect(tab.page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()


async def test_without_scripts_enter_shows_a_preview_and_starts_nothing(
    address: str, queue: Queue, database: Database
) -> None:
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, java_script_enabled=False)
        await tab.go("/new-crawl")
        await tab.page.get_by_label("URLs (one per line)").fill("http://127.0.0.1:9/")
        await tab.page.get_by_label("Source name").fill("nightly docs")
        await tab.press("Enter")
        await tab.page.wait_for_url("**/new-crawl/preview*")
        await expect(tab.page.get_by_label("Source name")).to_have_value("nightly docs")
        assert (await queue.list_jobs()).items == []


async def test_the_history_of_a_job_fits_a_phone(address: str, queue: Queue) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    await queue.pause(job.id, actor=f"worker {job.id}", reason="the site is being moved " * 5)
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=375)
        for path in ("", "/events"):
            await tab.go(f"/jobs/{job.id}{path}")
            scrolled = (
                "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth > e.clientWidth)"
            )
            assert not any(await tab.page.evaluate(scrolled))
            assert await tab.overflow() <= 0


async def test_a_question_asked_twice_at_once_still_gets_the_answer(tab: Tab, queue: Queue) -> None:
    """A browser reports a closed dialog with its next frame, maybe after the next dialog."""
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    await tab.go(f"/jobs/{job.id}")
    await tab.page.evaluate(
        "() => { const cancel = document.querySelector('#live_head form.inline button.danger');"
        " cancel.click(); document.getElementById('confirm').close(); cancel.click() }"
    )
    await tab.page.locator("#confirm-yes").click()
    await expect(tab.page.locator("h1 .badge")).to_have_text("canceled")


async def test_a_page_stands_still_while_it_asks(tab: Tab, queue: Queue) -> None:
    """A form that changed under an open question would send something else than was asked."""
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    badge = tab.page.locator("h1 .badge")
    await tab.page.add_init_script(REPORTS_CANCELLED)
    await tab.go(f"/jobs/{job.id}")
    await tab.page.get_by_role("button", name="Cancel job").click()
    await expect(tab.page.get_by_role("dialog")).to_be_visible()
    await queue.cancel(job.id)
    await tab.page.locator("body[data-reported]").wait_for()
    await expect(badge).to_have_text("pending")
    await tab.press("Escape")
    await expect(badge).to_have_text("canceled")


async def test_a_phone_has_its_menu(address: str, database: Database) -> None:
    key = (await create_key(database, "phone", scope=Scope.ADMIN)).text
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=PHONE, has_touch=True)
        await tab.go("/keys")
        await tab.page.get_by_label("API key").fill(key)
        await tab.press("Enter")
        await tab.page.get_by_text("Menu").tap()
        await tab.page.get_by_role("link", name="Sources").first.tap()
        await expect(tab.page.get_by_role("heading", name="Sources")).to_be_visible()
