"""Pages in a real browser: the right content, or a classified failure, and nothing forbidden."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from forager.errors import ErrorKind, Retry
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Request
from forager.render.browser import Browser, BrowserUnusable
from forager.render.renderer import RenderedPage, Renderer
from forager.render.resources import ResourceLoader
from render.conftest import AGENT, LIMITS, Rendering, allow
from render.pages import WORDS, requests_to, shown
from servers.site import Site
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")


def has_content(page: RenderedPage) -> bool:
    return WORDS.strip() in page.html.decode()


LATE = '<p id="late">'
CONTENT = {
    "/client": "Client",
    "/xhr": "From data",
    "/alerts": "Alerts",
    "/popups": "Popups",
    "/worker": "Worker",
    "/endless": "Endless",
    "/huge": "Huge",
    "/changes": "Changes",
    "/shadow": "Shadow",
}


async def test_the_content_is_read_whatever_else_scripts_do(rendering: Rendering) -> None:
    pages = await asyncio.gather(*(rendering.page(path) for path in CONTENT))
    for page, title in zip(pages, CONTENT.values(), strict=True):
        assert f"<h1>{title}</h1>" in page.html.decode()
        assert has_content(page), title
        assert page.moved is None
    of = dict(zip(CONTENT, pages, strict=True))
    endless = of["/endless"]
    for _ in range(5):
        if endless.requests < LIMITS.requests and endless.cut:
            # the machine was busy, and the time of the page was over before: again, alone
            endless = await rendering.page("/endless")
    assert endless.requests == LIMITS.requests
    [huge] = of["/huge"].resources
    assert huge.refused is not None
    assert "past the limit" in huge.refused
    assert "<p>In the shadow tree</p></x-card>" in of["/shadow"].html.decode()
    asked = set(rendering.site.hits)
    assert not [target for target in asked if "popup=" in target]
    assert "/sw.js" not in asked


async def test_scrolling_loads_more_up_to_its_limit(rendering: Rendering) -> None:
    assert "Item 20<" not in (await rendering.page("/scroll")).html.decode()
    page = await rendering.page("/scroll", scroll=10)
    assert "Item 59<" in page.html.decode()


async def test_a_selector_is_waited_for(rendering: Rendering) -> None:
    assert LATE not in (await rendering.page("/selector")).html.decode()
    page = await rendering.page("/selector", wait_for="#late")
    assert LATE in page.html.decode()


async def test_routes_of_a_router_are_reported(rendering: Rendering) -> None:
    page = await rendering.page("/router")
    assert page.routes == (f"{rendering.site.url}/routed",)
    assert 'href="/one"' in page.html.decode()


async def test_a_script_that_leads_elsewhere_is_a_redirect(rendering: Rendering) -> None:
    targets = {"/moves": "/client", "/replaces": "/static", "/download": "/file.bin"}
    pages = await asyncio.gather(*(rendering.page(path) for path in targets))
    assert [page.moved for page in pages] == [rendering.site.url + to for to in targets.values()]
    assert "/file.bin" not in rendering.site.hits


async def test_requests_carry_our_name_and_no_cookies(rendering: Rendering) -> None:
    await rendering.page("/cookies")
    head = rendering.site.heads["/echo.json"].decode().lower()
    assert f"user-agent: {AGENT}".lower() in head
    assert "cookie:" not in head


async def test_assets_are_fetched_once_for_all_pages(rendering: Rendering) -> None:
    first = await rendering.page("/assets")
    again = await rendering.page("/assets")
    assert [each.cached for each in (*first.resources, *again.resources)][-1] is True
    assert rendering.site.hits["/lib.js"] == 1


async def test_a_page_whose_own_data_is_unavailable_is_tried_again(rendering: Rendering) -> None:
    with pytest.raises(Retry, match="503"):
        await rendering.page("/broken-data")


async def test_a_screenshot_is_a_picture(rendering: Rendering) -> None:
    page = await rendering.page("/client", screenshot=True)
    assert page.screenshot.startswith(b"\x89PNG")


@pytest.mark.parametrize("path", ["/loop", "/grows", "/arrays"])
@pytest.mark.long
async def test_a_page_that_breaks_a_limit_fails_and_the_next_one_does_not(
    rendering: Rendering, path: str
) -> None:
    with pytest.raises(Retry) as failure:
        await rendering.page(path)
    assert failure.value.kind is ErrorKind.RENDER
    assert has_content(await rendering.page("/client"))


async def test_a_page_next_to_one_that_kills_the_browser_is_rendered(rendering: Rendering) -> None:
    innocent, guilty = await asyncio.gather(
        rendering.page("/selector", wait_for="#late"),
        rendering.page("/arrays"),
        return_exceptions=True,
    )
    assert isinstance(innocent, RenderedPage)
    assert has_content(innocent)
    assert isinstance(guilty, Retry)


@pytest.mark.parametrize("which", ["python", "renderer", "browser"])
async def test_a_killed_browser_is_replaced(rendering: Rendering, which: str) -> None:
    before = rendering.site.hanging
    under_way = asyncio.create_task(rendering.page("/hangs"))
    await eventually(lambda: rendering.site.hanging != before)
    current = rendering.renderer._current
    assert current is not None
    below = psutil.Process(current.pid).children(recursive=True)
    for victim in _victims(which, psutil.Process(current.pid)):
        victim.kill()
    with pytest.raises(Retry) as failure:
        await under_way
    assert failure.value.kind is ErrorKind.RENDER
    assert has_content(await rendering.page("/client"))
    if which != "renderer":
        gone, alive = psutil.wait_procs(below, timeout=10)
        assert not alive, f"{len(gone)} ended"


def _victims(which: str, process: psutil.Process) -> list[psutil.Process]:
    if which == "python":
        return [process]
    below = [(each, _command(each)) for each in process.children(recursive=True)]
    if which == "renderer":
        return [each for each, line in below if "--type=renderer" in line]
    return [each for each, line in below if "chrom" in line and "--type=" not in line]


def _command(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


@asynccontextmanager
async def guarded(browser_path: str) -> AsyncIterator[tuple[Client, Renderer]]:
    """A renderer whose guard allows the site under test, and no other private address."""
    guard = GuardPolicy(allow_hosts=frozenset({"site.example"}))
    options = ClientOptions(user_agent=AGENT, guard=guard, resolver=_Resolver())
    async with Client(options) as client, Renderer(browser_path, LIMITS) as renderer:
        yield client, renderer


class _Resolver:
    async def resolve(self, host: str) -> list[str]:
        return ["127.0.0.1"]

    async def close(self) -> None: ...


async def test_no_forbidden_address_is_reached(browser_path: str, site: Site) -> None:
    """By fetch, XHR, script, frame, socket, event source, worker, beacon or preload."""
    targets = [
        f"http://127.0.0.1:{site.port}/secret",
        f"http://localhost:{site.port}/secret",
        f"http://rebound.example:{site.port}/secret",
        f"http://[::1]:{site.port}/secret",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
    ]
    site.pages["/attack"] = shown("Attack", requests_to(*targets))
    async with guarded(browser_path) as (client, renderer):
        document = await client.fetch(Request(f"http://site.example:{site.port}/attack"))
        connections = site.connections
        loader = ResourceLoader.of(client, allow, LIMITS, user_agent=AGENT)
        page = await renderer.render(document, loader, wait_for="body")
        assert has_content(page)
        refused = [each for each in page.resources if each.refused is not None]
        assert len(refused) == len(page.resources) > len(targets)
    assert "/secret" not in site.hits
    assert site.connections == connections
    assert "answered: [http" not in page.html.decode()


async def test_without_interception_there_is_no_network(browser_path: str, site: Site) -> None:
    """What the browser process itself sends, past any route, leads nowhere."""
    browser = await Browser.start(browser_path, LIMITS)
    try:
        if not browser.isolated:
            pytest.skip("this system offers no network namespaces")
        assert browser.sandboxed
        links = psutil.Process(browser.pid).net_connections(kind="inet")
        assert links == []
    finally:
        await browser.stop()


async def test_a_browser_that_is_none_is_unusable(site: Site) -> None:
    with pytest.raises(BrowserUnusable):
        await Browser.start("/bin/false", LIMITS)
