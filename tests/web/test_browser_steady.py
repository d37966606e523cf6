"""Live updates keep the scroll position, focus, selection and open parts of a page."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from playwright.async_api import Route, expect

from forager.api.server import serve
from forager.db.database import Database
from forager.errors import DatabaseUnavailable
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings
from forager.web import page as live_page
from forager.web.app import dashboard
from web.browser import Tab, open_browser, open_tab

pytestmark = pytest.mark.timeout(600)

PLACE = "id => document.getElementById(id).getBoundingClientRect().top"
SELECT = """id => {
    const range = document.createRange();
    range.selectNodeContents(document.querySelector(`#${CSS.escape(id)} td.wide a`));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


async def put_failures(database: Database, job_id: UUID, first: int, second: int) -> None:
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_states (job_id, total_processed, discovered, failed, reasons)
            VALUES (%(job)s, %(sum)s, %(sum)s, %(sum)s, jsonb_build_object('failed',
                    jsonb_build_object('timeout', %(a)s::int, 'http_404', %(b)s::int)))
                ON CONFLICT (job_id) DO UPDATE
               SET total_processed = excluded.total_processed, discovered = excluded.discovered,
                   failed = excluded.failed, reasons = excluded.reasons
            """,
            {"job": job_id, "sum": first + second, "a": first, "b": second},
        )


async def test_a_row_that_comes_above_moves_nothing(tab: Tab, queue: Queue) -> None:
    jobs = [
        (await queue.enqueue(NewJob(kind="selftest", source_id=f"site{n}.example"))).job
        for n in range(40)
    ]
    row = f"j-{jobs[10].id}"
    await tab.go("/jobs")
    await expect(tab.page.locator("#live-state")).to_contain_text("Live, as of")
    await tab.page.evaluate("id => document.getElementById(id).scrollIntoView()", row)
    await tab.page.locator(f"#{row} input").focus()
    await tab.page.evaluate(SELECT, row)
    before = await tab.page.evaluate(PLACE, row)
    new = (await queue.enqueue(NewJob(kind="selftest", source_id="new.example"))).job
    await tab.page.get_by_role("button", name="1 new").wait_for()
    assert await tab.page.locator(f"#j-{new.id}").count() == 0
    # the browser puts the page back in its next frame
    await tab.page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
    assert await tab.page.evaluate("() => document.activeElement.id") == f"c-{jobs[10].id}"
    assert await tab.page.evaluate("() => getSelection().toString()") == "site10.example"
    assert abs(await tab.page.evaluate(PLACE, row) - before) < 5


async def test_what_is_open_stays_open_and_what_is_closed_closed(
    tab: Tab, queue: Queue, database: Database
) -> None:
    job = (await queue.enqueue(NewJob(kind="selftest", source_id="one.example"))).job
    await put_failures(database, job.id, 3, 2)
    await tab.go(f"/jobs/{job.id}")
    await expect(tab.page.locator("#live-state")).to_contain_text("Live, as of")
    first, second = tab.page.locator("#g-timeout"), tab.page.locator("#g-http_404")
    await first.locator("summary").click()
    await second.locator("summary").click()
    await put_failures(database, job.id, 30, 20)
    await expect(second).to_contain_text("404 Not Found: 20")
    await expect(first).to_contain_text("timeout: 30")
    await expect(first).not_to_have_attribute("open", "")
    await expect(second).to_have_attribute("open", "")


async def test_a_server_that_goes_is_noticed(web_settings: Settings, database: Database) -> None:
    stopping, started = asyncio.Event(), asyncio.Queue[str]()
    serving = asyncio.create_task(
        serve(web_settings, database, stopping, started=started.put_nowait, extend=dashboard)
    )
    async with asyncio.timeout(60):
        address = await started.get()
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address)
        await tab.go("/workers")
        state = tab.page.locator("#live-state")
        await expect(state).to_contain_text("Live, as of")
        stopping.set()
        await serving
        await expect(state).to_contain_text("Not live: the connection is lost. Numbers are as of")


async def test_an_action_is_not_cut_off_by_the_news_that_it_causes(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first crawl replaces the page on which it is started; its answer arrives later here."""
    monkeypatch.setattr(live_page, "INTERVAL", 0.1)

    async def answer_late(route: Route) -> None:
        answer = await route.fetch()
        await asyncio.sleep(1)
        await route.fulfill(response=answer)

    await tab.go("/")
    await expect(tab.page.locator("#live-state")).to_contain_text("Live, as of")
    await tab.page.route("**/new-crawl/demo", answer_late)
    await tab.page.get_by_role("button", name="Crawl the demo site").click()
    await tab.page.wait_for_url("**/jobs/*")


async def test_a_database_that_does_not_answer_is_noticed(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tab.go("/jobs")
    state = tab.page.locator("#live-state")
    await expect(state).to_contain_text("Live, as of")

    def unavailable(*_: object) -> None:
        raise DatabaseUnavailable("the database does not answer")

    monkeypatch.setattr(live_page, "live_blocks", unavailable)
    await expect(state).to_contain_text("Not live: the database does not answer.")
    monkeypatch.undo()
    await expect(state).to_contain_text("Live, as of")
