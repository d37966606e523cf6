"""Takes every page of the dashboard in light and dark, for a desk and for a phone.

Run by `make screenshots`. A server of its own crawls the bundled site twice and is given a
catalogue, so that every page has something to show; the pictures are in build/screenshots.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from playwright.async_api import Browser, Page

from demo_catalogue import fill_catalogue
from forager.db.database import open_database
from forager.settings import Settings
from web.browser import DESKTOP, PHONE, open_browser

FOLDER = Path("build/screenshots")
PORT = 8798
ADDRESS = f"http://127.0.0.1:{PORT}"
HEIGHT = 900
PATIENCE = 120
# one that comes in several versions
PARSERS = "catalog.kiosk_parsers"


async def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with _dashboard() as settings, open_browser() as browser:
        await _take(browser, {"first-run": "/", "no-products": "/products", "no-tasks": "/tasks"})
        pages = await _demo_data(browser)
        async with open_database(settings) as database:
            pages |= await fill_catalogue(database, settings)
        await _take(browser, pages)
    sys.stdout.write(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}\n")


@asynccontextmanager
async def _dashboard() -> AsyncIterator[Settings]:
    """Everything there is, in a home of its own, and how it is set up."""
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
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
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
    page.set_default_timeout(PATIENCE * 1000)
    await _crawl(page, "Crawl the bundled site", "/new-crawl")
    await _crawl(page, "Refresh now", "/sources/demo")
    job = page.url.removeprefix(ADDRESS)
    await page.goto(f"{ADDRESS}/search?q=ledger")
    hit = await page.locator(".hit a").first.get_attribute("href")
    await page.close()
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": job,
        "job-pages": f"{job}/pages",
        "job-events": f"{job}/events",
        "new-crawl": "/new-crawl",
        "sources": "/sources",
        "source": "/sources/demo",
        "source-pages": "/sources/demo/pages",
        "source-diff": "/sources/demo/diff?old=1&new=2",
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
    await page.wait_for_url("**/jobs/*")
    await page.locator("h1 .s-completed").wait_for()


async def _take(browser: Browser, pages: dict[str, str]) -> None:
    for scheme in ("light", "dark"):
        for width in (DESKTOP, PHONE):
            context = await browser.new_context(
                viewport={"width": width, "height": HEIGHT},
                color_scheme="light" if scheme == "light" else "dark",
            )
            page = await context.new_page()
            for name, path in pages.items():
                await page.goto(ADDRESS + path)
                await page.wait_for_load_state("load")
                picture = FOLDER / f"{name}-{scheme}-{width}.png"
                await page.screenshot(path=picture, full_page=True)
            await context.close()


if __name__ == "__main__":
    asyncio.run(main())
