"""Take pictures of every page of the dashboard, light and dark, at desktop and phone width.

Run by `make screenshots`. A separate server crawls the bundled site twice and a site that changes,
and gets a filled catalog, so that every page has content. The pictures are in build/screenshots.
With arguments such as `job product*`, only pages whose names match are taken.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from fnmatch import fnmatch
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import aiohttp
from playwright.async_api import Browser, Page

from demo_catalog import fill_catalog
from forager import demo
from forager.analytics.sync import sync
from forager.db.database import open_database
from forager.settings import Settings
from parsers.archived_kiosk import Kiosk, item
from web.browser import PHONE, open_browser

FOLDER = Path("build/screenshots")
PORT = 8798
ADDRESS = f"http://127.0.0.1:{PORT}"
BUNDLED = f"http://127.0.0.1:{demo.PORT}"
HEIGHT = 900
WIDE = 1440
WAIT_LIMIT = 300
# one that comes in several versions
PARSERS = "parsers.kiosk_parsers"


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with _dashboard() as settings, open_browser() as browser:
        await _take(browser, {"first-run": "/", "no-products": "/products", "no-tasks": "/tasks"})
        await _take(browser, {"no-analytics": "/analytics"})
        pages = await _demo_data(browser)
        async with open_database(settings) as database:
            pages |= await fill_catalog(database, settings)
            await Kiosk(database, settings).archive([(n, item(n, was="£9")) for n in range(1, 9)])
            await sync(database, settings)
        await _run_audit(browser)
        await _take(browser, pages)
        await _take(browser, {"backtest": "/parsers"}, before=_compare)
        await _take(browser, {"menu": "/"}, before=_open_menu, widths=(PHONE,))
        await _take(browser, {"question": "/sources/demo"}, before=_ask)
    sys.stdout.write(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}\n")


@asynccontextmanager
async def _dashboard() -> AsyncIterator[Settings]:
    """A server with all parts, in a temporary home, and its settings."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "FORAGER_HOME": home, "FORAGER_PARSER_MODULES": PARSERS}
        forager = Path(sys.executable).with_name("forager")
        command = [str(forager), "--log-level", "error", "up", "--port", str(PORT)]
        process = subprocess.Popen(command, env=environment)
        try:
            await _until_ready()
            yield Settings(home=Path(home), parser_modules=(PARSERS,))
        finally:
            process.terminate()
            process.wait(60)


async def _until_ready() -> None:
    async with asyncio.timeout(WAIT_LIMIT), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{ADDRESS}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


async def _demo_data(browser: Browser) -> dict[str, str]:
    """Two generations of the bundled site, and the pages that show them."""
    page = await browser.new_page()
    page.set_default_timeout(WAIT_LIMIT * 1000)
    await _crawl(page, "Crawl the demo site", "/new-crawl")
    await _crawl(page, "Refresh now", "/sources/demo")
    job = page.url.removeprefix(ADDRESS)
    await page.goto(f"{ADDRESS}/search?q=ledger")
    hit = await page.locator(".hit a").first.get_attribute("href")
    changed = await _crawl_changing_site(page) if _is_wanted("source-diff") else "/sources/demo"
    await page.close()
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": job,
        "job-pages": f"{job}/pages",
        "job-events": f"{job}/events",
        "new-crawl": "/new-crawl",
        "overview-day": "/?range=1440",
        "source-tree": "/sources/demo/tree",
        "sources": "/sources",
        "source": "/sources/demo",
        "source-pages": "/sources/demo/pages",
        "source-diff": f"{changed}/diff?old=1&new=2",
        "source-same": "/sources/demo/diff?old=1&new=2",
        "explain": f"/explain?url={BUNDLED}/guide/missing.html",
        "explain-robots": f"/explain?url={BUNDLED}/private/notes.html",
        "explain-nothing": "/explain",
        "explain-refused": "/explain?url=ftp://example.org/",
        "prices": "/prices",
        "schedules": "/schedules",
        "events": "/events",
        "events-jobs": "/events/jobs",
        "events-none": "/events?kind=parser.degraded",
        "audit": "/audit",
        "analytics-prices": "/analytics?days=365",
        "analytics-costs": "/analytics?query=crawl-cost&days=365",
        "analytics-parsers": "/analytics?query=parser-quality&days=365",
        "analytics-refused": "/analytics?days=soon",
        "search": "/search?q=ledger",
        "read": hit or "/search",
        "workers": "/workers",
        "keys": "/keys",
        "sign-in": "/sign-in",
        "nothing": "/nothing",
    }


async def _crawl(page: Page, button: str, path: str) -> None:
    await page.goto(ADDRESS + path)
    await page.get_by_role("button", name=button).click()
    await _until_completed(page)


async def _until_completed(page: Page) -> None:
    await page.wait_for_url("**/jobs/*")
    await page.locator("h1 .s-completed").wait_for()


async def _crawl_changing_site(page: Page) -> str:
    """Two generations of a site that was changed in between; the path of its source."""
    with _site() as (folder, address):
        _write(
            folder, {"index": "", "install": "Version 1 needs Python 3.10.", "old": "Gone soon."}
        )
        await page.goto(f"{ADDRESS}/new-crawl")
        await page.get_by_label("URLs (one per line)").fill(address)
        await page.get_by_label("Source name").fill("handbook")
        await page.get_by_text("More settings").click()
        await page.get_by_label("Delay (s)", exact=True).fill("0.1")
        await page.get_by_label("Allow private").check()
        await page.get_by_role("button", name="Start crawl").click()
        await _until_completed(page)
        (folder / "old.html").unlink()
        _write(folder, {"index": "", "install": "Version 2 needs Python 3.11.", "new": "Just in."})
        await _crawl(page, "Refresh now", "/sources/handbook")
        await page.goto(f"{ADDRESS}/sources/handbook")
        if await page.get_by_role("button", name="Publish").count():
            await page.get_by_role("button", name="Publish").first.click()
    return "/sources/handbook"


@contextmanager
def _site() -> Iterator[tuple[Path, str]]:
    """A folder that is served on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        handler = partial(_Quiet, directory=folder)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield Path(folder), f"http://127.0.0.1:{server.server_port}/index.html"
            server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


def _write(folder: Path, texts: dict[str, str]) -> None:
    links = "".join(f"<li><a href='{name}.html'>{name}</a></li>" for name in texts)
    for name, text in texts.items():
        title = name.capitalize()
        body = f"<h1>{title}</h1><p>{text} All of it is explained here, step by step.</p>"
        head = f"<!doctype html><html lang=en><title>{title}</title>"
        html = f"{head}<main>{body}<ul>{links}</ul></main>"
        (folder / f"{name}.html").write_text(html)


async def _run_audit(browser: Browser) -> None:
    page = await browser.new_page()
    page.set_default_timeout(WAIT_LIMIT * 1000)
    await page.goto(f"{ADDRESS}/audit")
    await page.get_by_role("button", name="Run now").click()
    await page.get_by_role("heading", name="Findings").wait_for()
    await page.close()


async def _compare(page: Page) -> None:
    await page.locator("#f-name").select_option("kiosk")
    await page.locator("#f-version").select_option("2")
    await page.locator("#f-against").select_option("1")
    await page.get_by_role("button", name="Compare").click()
    await page.get_by_role("heading", name="kiosk: 2 against 1").wait_for()


async def _open_menu(page: Page) -> None:
    await page.get_by_text("Menu").click()


async def _ask(page: Page) -> None:
    await page.get_by_role("button", name="Delete source").click()
    await page.get_by_role("dialog").wait_for()


async def _nothing(_: Page) -> None:
    return


async def _take(
    browser: Browser,
    pages: dict[str, str],
    *,
    before: Callable[[Page], Awaitable[None]] = _nothing,
    widths: tuple[int, ...] = (WIDE, PHONE),
) -> None:
    wanted = {name: path for name, path in pages.items() if _is_wanted(name)}
    for scheme, width in itertools.product(("light", "dark"), widths):
        context = await browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme="light" if scheme == "light" else "dark",
        )
        page = await context.new_page()
        page.set_default_timeout(WAIT_LIMIT * 1000)
        for name, path in wanted.items():
            await page.goto(ADDRESS + path)
            await page.wait_for_load_state("load")
            await before(page)
            picture = FOLDER / f"{name}-{scheme}-{width}.png"
            await page.screenshot(path=picture, full_page=True)
        await context.close()


def _is_wanted(name: str) -> bool:
    return len(sys.argv) == 1 or any(fnmatch(name, pattern) for pattern in sys.argv[1:])


if __name__ == "__main__":
    asyncio.run(main())
