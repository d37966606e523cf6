"""Every page in a real browser: accessible, no wider than the screen, without script errors."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import pytest
from fastapi.routing import APIRoute
from playwright.async_api import Browser, expect

from crawl.crawling import Crawls
from demo_catalogue import LAMPS, fill_catalogue
from forager.access.caller import LOCAL
from forager.crawl.templates import save_template
from forager.db.database import Database
from forager.settings import Settings
from forager.web.app import ROUTERS
from forager.web.navigation import PATHS
from parsers.archived_kiosk import MODULE, Kiosk, item, kiosk_parsers
from servers.site import Page, Site, html, text
from web.browser import LIMIT, PHONE, Tab, open_browser, open_tab

pytestmark = pytest.mark.timeout(600)

WIDE = 1440
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>" + "long/" * 60
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# colors are all that a dark page can have wrong on its own
ALL_RULES: dict[str, Any] = {"resultTypes": ["violations"], "preload": False, "iframes": False}
COLORS = {**ALL_RULES, "runOnly": ["color-contrast", "link-in-text-block"]}
RUN_AXE = """
async options => (await axe.run(document, options)).violations.map(
    found => `${found.id}: ` + found.nodes.map(node => node.html.slice(0, 200)).join(" | "))
"""
# files, and pages that are seen without JavaScript only
NOT_PAGES = re.compile(r".*/(file|export|original|picture|\{position\})")


@pytest.fixture
def web_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0, "parser_modules": (MODULE,)})


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    expect.set_options(timeout=LIMIT)
    async with open_browser() as opened:
        yield opened


async def open_checked(browser: Browser, address: str) -> Tab:
    tab, context = await open_tab(browser, address, reduced_motion="reduce")
    await context.add_init_script(AXE)
    return tab


async def check(tab: Tab, path: str) -> list[str]:
    """What is wrong with the open page in any of its four views."""
    found = []
    for width in (WIDE, PHONE):
        await tab.page.set_viewport_size({"width": width, "height": 900})
        if wider := await tab.overflow():
            found.append(f"{path} at {width} px: {wider} px wider than the screen")
        for scheme, rules in (("light", ALL_RULES), ("dark", COLORS)):
            await tab.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            broken = await tab.page.evaluate(RUN_AXE, rules)
            found += [f"{path} at {width} px, {scheme}: {each}" for each in broken]
    found += [f"{path}: {complaint}" for complaint in tab.complaints]
    tab.complaints.clear()
    return found


TOOK = {"load": 0.0, "check": 0.0}


async def check_pages(browser: Browser, address: str, paths: list[str]) -> list[str]:
    async def visit(share: list[str]) -> list[str]:
        tab = await open_checked(browser, address)
        found = []
        for path in share:
            t0 = time.perf_counter()
            await tab.go(path)
            t1 = time.perf_counter()
            found += await check(tab, path)
            TOOK["load"] += t1 - t0
            TOOK["check"] += time.perf_counter() - t1
        return found

    shares = await asyncio.gather(*(visit(paths[start::2]) for start in range(2)))
    return [each for share in shares for each in share]


def pages(word: str) -> dict[str, Page]:
    """A site with all that a reader shows, and links that fail or are excluded."""
    guide = (
        f"<main><h1>Guide</h1><p>A {word} <code>ledger</code> with a <a href='/'>link</a>.</p>"
        "<h2>Code</h2><pre><code class='language-python'>def f(x): return 'long' * 900</code></pre>"
        "<h2>Table</h2><table><tr><th>Name<th>Value</tr><tr><td>a<td>1</tr></table>"
        "<h2>Quote</h2><blockquote><p>A quote.</blockquote><ul><li>One<li>Two</ul></main>"
    )
    links = ("/guide", "/missing", "/status/503", "/private/notes", f"/{word}")
    return {
        "/robots.txt": text("User-agent: *\nDisallow: /private/"),
        "/": html("Home", links),
        "/guide": html("Guide", body=guide),
        f"/{word}": html(f"About {word} things"),
    }


async def fill(database: Database, settings: Settings, site: Site) -> list[str]:
    """Two crawls of a site and a catalog; the paths of pages that show them."""
    crawls = Crawls(database, settings)
    for word in ("old", "new"):
        site.pages = dict(pages(word))
        crawled = await crawls.run(site.url, source="demo", delay=0)
    waiting = await crawls.ask("https://docs.example.org/", source="long." * 30 + "example")
    options = {"urls": ["https://docs.example.org/"], "max_pages": 500}
    await save_template(database, LOCAL, "nightly docs", options)
    catalog = await fill_catalogue(database, settings)
    kiosk = Kiosk(database, settings)
    await kiosk.archive([(n, item(n, was="£9")) for n in range(1, 4)])
    job, page = f"/jobs/{crawled.job.id}", f"{site.url}/guide"
    read = f"/read?url={page}&source=demo"
    return [
        *PATHS.values(), *catalog.values(), "/api/docs", "/sign-in",
        "/?range=1440", f"/jobs/{waiting}", f"/jobs/{waiting}/pages?outcome=pending", "/jobs?q=no",
        job, f"{job}/pages", f"{job}/events", f"{job}/response?url={page}",
        "/new-crawl?template=nightly docs", f"/new-crawl?job={crawled.job.id}",
        "/sources/demo", "/sources/demo/pages", "/sources/demo/tree",
        "/sources/demo/diff?old=1&new=2", "/search?q=ledger", "/search?q=nothingatall",
        read, *(f"{read}&tab={tab}" for tab in ("markdown", "original", "changes")),
        f"{read}&tab=changes&view=side", f"/explain?url={site.url}/missing",
        f"/explain?url=https://{LAMPS}/{HOSTILE}", "/explain?url=ftp://x", "/events/jobs",
        "/events?kind=parser.degraded", "/analytics?days=soon", f"/products?q={HOSTILE}",
        "/products?domain=no.example", "/tasks?domain=no.example", "/domains?slowed=yes",
        f"/tasks/{kiosk.task_ids[0]}/page",
    ]  # fmt: skip


def unvisited(paths: list[str]) -> list[str]:
    """Pages that no path leads to."""
    visited = [urlsplit(path).path for path in paths]
    return [
        route.path
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in route.methods
        if not NOT_PAGES.fullmatch(route.path)
        if not any(route.path_regex.match(path) for path in visited)
    ]


async def test_every_page_with_content(
    browser: Browser, address: str, database: Database, web_settings: Settings
) -> None:
    site = Site()
    with site.served(), kiosk_parsers():
        paths = await fill(database, web_settings, site)
        assert unvisited(paths) == []
        found = await check_pages(browser, address, paths)
        print(TOOK, len(paths))
        assert found == []
