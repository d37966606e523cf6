"""Every page in a real browser: accessible, no wider than the screen, without script errors."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncIterator, Collection
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from fastapi.routing import APIRoute
from playwright.async_api import Browser

from crawl.crawling import Crawls
from demo_catalog import fill_catalog
from demo_surroundings import LAMPS
from forager.db.database import Database
from forager.documents.publication import publish
from forager.settings import Settings
from forager.web.app import ROUTERS
from forager.web.navigation import PATHS
from parsers.archived_kiosk import MODULE, Kiosk, item, kiosk_parsers
from servers.site import Page, Site, html, text
from support.sql import execute
from web.browser import PHONE, Tab, open_browser, open_tab

pytestmark = pytest.mark.timeout(600)

WIDE = 1440
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>" + "long/" * 60
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RULES: dict[str, Any] = {"resultTypes": ["violations"], "preload": False, "iframes": False}
COLORS = {**RULES, "runOnly": ["color-contrast", "link-in-text-block"]}
LAYOUT = {**RULES, "rules": {"color-contrast": {"enabled": False}}}
# a dark page differs from a light one in its colors, and a narrow one from a wide one in its layout
Views = tuple[tuple[int, Literal["light", "dark"], dict[str, Any]], ...]
VIEWS: Views = (
    (WIDE, "light", RULES), (WIDE, "dark", COLORS),
    (PHONE, "dark", COLORS), (PHONE, "light", COLORS), (PHONE, "light", LAYOUT),
)  # fmt: skip
# the menu is the same on every page: it is checked on the first one. A phone has other elements,
# and the same colors elsewhere
RUN_AXE = """
async ([path, options]) => {
    const isNarrow = innerWidth < 500 && options.runOnly && path !== "/";
    if (isNarrow && !document.querySelector(".only-phone")) return [];
    const onPage = isNarrow ? { include: [[".only-phone"]] } : { exclude: [[".side"], [".top"]] };
    const parts = path === "/" ? document : onPage;
    const { violations } = await axe.run(parts, options);
    return violations.map(
        found => `${found.id}: ` + found.nodes.map(node => node.html.slice(0, 200)).join(" | "));
}
"""
# rows of a table are alike, and so are the sections of the reference: a few stand for all
SHORTEN = """
path => {
    const alike = path === "/api/docs" ? "section:not(:nth-of-type(20n + 1))" : "tr:nth-child(n+5)";
    for (const element of document.querySelectorAll(alike)) element.remove();
}
"""
# the page stays as it was loaded
NO_STREAM = "window.EventSource = class { addEventListener() {} close() {} }"
# files, pages that only a form leads to, and the way to an issuer (tests/api/test_tokens.py)
FILES = re.compile(r".*/(file|export|original|picture|secret|quota|oidc|callback|\{position\})")


@pytest.fixture
def web_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0, "parser_modules": (MODULE,)})


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


async def open_checked(browser: Browser, address: str) -> Tab:
    tab, context = await open_tab(browser, address, reduced_motion="reduce")
    await context.add_init_script(f"{NO_STREAM}\n{AXE}")
    return tab


async def check(tab: Tab, path: str, views: Views = VIEWS) -> list[str]:
    """The problems of the open page, in any of the views."""
    found = []
    for width in (PHONE, WIDE):
        await tab.page.set_viewport_size({"width": width, "height": 900})
        if wider := await tab.overflow():
            found.append(f"{path} at {width} px: {wider} px wider than the screen")
        if width == PHONE and path in SHORT_WAY:
            top = await tab.page.evaluate(FIRST_ROW)
            found += [f"{path}: first row at {top:.0f} px on a phone"] if top > 400 else []
    await tab.page.evaluate(SHORTEN, path)
    shown: tuple[int, str] = (WIDE, "light")
    for width, scheme, rules in views:
        if width != shown[0]:
            await tab.page.set_viewport_size({"width": width, "height": 900})
        if scheme != shown[1]:
            await tab.page.emulate_media(color_scheme=scheme)
        shown = (width, scheme)
        broken = await tab.page.evaluate(RUN_AXE, [path, rules])
        found += [f"{path} at {width} px, {scheme}: {each}" for each in broken]
    found += [f"{path}: {complaint}" for complaint in tab.complaints]
    tab.complaints.clear()
    return found


async def check_pages(
    browser: Browser, address: str, paths: Collection[str], views: Views = VIEWS
) -> list[str]:
    waiting = deque(paths)

    async def visit() -> list[str]:
        tab, found = await open_checked(browser, address), []
        while waiting:
            path = waiting.popleft()
            await tab.go(path)
            found += await check(tab, path, views)
        return found

    shares = await asyncio.gather(visit(), visit())
    return [each for share in shares for each in share]


async def check_dialogs(tab: Tab, job: str) -> list[str]:
    """Dialogs, and pages that only a form leads to."""
    await tab.go("/sources/demo")
    await tab.press("Control+k")
    await tab.page.locator("#palette[open]").wait_for()
    found = await check(tab, "the command palette")
    await tab.press("Escape")
    await tab.page.locator("#palette[open]").wait_for(state="detached")
    await tab.press("?")
    await tab.page.locator("#shortcuts[open]").wait_for()
    found += await check(tab, "the shortcuts")
    await tab.press("Escape")
    await tab.page.get_by_role("button", name="Delete source").click()
    found += await check(tab, "a question")
    await tab.go(f"/new-crawl?job={job}")
    await tab.page.get_by_role("button", name="Preview").click()
    await tab.page.locator("#preview").wait_for()
    found += await check(tab, "a preview")
    await tab.go("/webhooks")
    await tab.page.get_by_label("URL, e-mail").fill("https://hooks.example.org/")
    await tab.page.get_by_role("button", name="Add").click()
    await tab.page.locator("#secret").wait_for()
    found += await check(tab, "a secret")
    # the first key signs its creator in
    await tab.go("/keys")
    await tab.page.get_by_label("Name").fill("me")
    await tab.page.get_by_role("button", name="Create key").click()
    await tab.page.locator("#secret").wait_for()
    await tab.go(urlsplit(tab.page.url).path.replace("/secret", "/quota"))
    await tab.page.get_by_label("Active jobs").wait_for()
    return found + await check(tab, "a quota")


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


async def fill(database: Database, settings: Settings, site: Site) -> tuple[str, list[str]]:
    """Two crawls of a site and a catalog; the last job, and the paths of pages that show them."""
    crawls = Crawls(database, settings)
    for word in ("old", "new"):
        site.pages = dict(pages(word))
        crawled = await crawls.run(site.url, source="demo", delay=0)
        await publish(database, "demo", force=True)  # it was held back: too many URLs failed
    await add_history(database, crawled.job.id)
    waiting = await crawls.ask("https://docs.example.org/", source="long." * 30 + "example")
    catalog = await fill_catalog(database, settings)
    kiosk = Kiosk(database, settings)
    await kiosk.archive([(n, item(n, was="£9")) for n in range(1, 4)])
    await execute(
        database,
        """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, segment,
                                       segment_offset, segment_length)
            SELECT id, domain_id, 'download', 1, 1, 'ok', segment, segment_offset, segment_length
              FROM crawl_tasks WHERE id = ANY (%s)
            """,
        kiosk.task_ids,
    )
    job, page = f"/jobs/{crawled.job.id}", f"{site.url}/guide"
    read = f"/read?url={page}&source=demo"
    paths = [
        *PATHS.values(), *catalog.values(), "/api/docs", "/sign-in", "/new-sources",
        f"/jobs/{waiting}", f"/jobs/{waiting}/pages?outcome=pending", "/jobs?q=no",
        job, f"{job}/pages", f"{job}/events", f"{job}/response?url={page}",
        f"/new-crawl?job={crawled.job.id}",
        "/sources/demo", "/sources/demo/pages", "/sources/demo/tree",
        "/sources/demo/diff?old=1&new=2", "/sources/demo/diff?old=1&new=2&view=lines",
        "/prices?direction=rises&by=amount&days=90", "/settings?q=proxy",
        "/items/show?item=1", "/items/suggestions", "/items/index", "/alerts/1",
        "/search?q=ledger", "/search?q=nothingatall",
        read, *(f"{read}&tab={tab}" for tab in ("markdown", "original", "changes")),
        f"{read}&tab=changes&view=side", f"/explain?url={site.url}/missing",
        f"/explain?url=https://{LAMPS}/{HOSTILE}", "/explain?url=ftp://x", "/events/jobs",
        "/events?kind=parser.degraded", "/analytics?days=soon", f"/products?q={HOSTILE}",
        "/products?domain=no.example", "/tasks?domain=no.example",
        f"/tasks/{kiosk.task_ids[0]}/page",
    ]  # fmt: skip
    return str(crawled.job.id), list(dict.fromkeys(paths))


async def add_history(database: Database, job_id: UUID) -> None:
    """What a worker stores while a crawl runs longer than this one."""
    await execute(
        database,
        """
        INSERT INTO crawl_minutes (job_id, at, discovered, settled, failed, newly_settled,
                                   newly_failed)
        SELECT id, started_at - minutes * interval '1 minute', 9, 9 - minutes, 1, 1, 0
          FROM crawl_jobs, generate_series(1, 4) AS minutes
         WHERE id = %s
        """,
        job_id,
    )
    await execute(
        database,
        "UPDATE crawl_jobs SET started_at = started_at - interval '5 minutes' WHERE id = %s",
        job_id,
    )
    line = {"at": "2026-11-16T12:00:00+00:00", "level": "warning", "text": HOSTILE}
    await execute(
        database,
        "UPDATE crawl_states SET log_lines = %s WHERE job_id = %s",
        json.dumps([line]),
        job_id,
    )


# the first row of these lists is on the first screen of a phone
SHORT_WAY = ("/jobs", "/sources", "/products", "/prices", "/tasks", "/events", "/domains",
             "/proxies", "/webhooks", "/alerts", "/errors/list", "/dead-letters")  # fmt: skip
FIRST_ROW = "() => document.querySelector('main tbody tr')?.getBoundingClientRect().top ?? 0"


def unvisited(paths: Collection[str]) -> list[str]:
    """Pages that no path leads to."""
    visited = [urlsplit(path).path for path in paths]
    return [
        route.path
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
        if not FILES.fullmatch(route.path)
        if not any(route.path_regex.match(path) for path in visited)
    ]


async def test_every_page(
    browser: Browser, address: str, database: Database, web_settings: Settings
) -> None:
    found = await check_pages(browser, address, PATHS.values(), VIEWS[-1:])
    site = Site()
    with site.served(), kiosk_parsers():
        job, paths = await fill(database, web_settings, site)
        assert unvisited(paths) == []
        found += await check_pages(browser, address, paths)
        found += await check_dialogs(await open_checked(browser, address), job)
    assert not found, "\n".join(found)
