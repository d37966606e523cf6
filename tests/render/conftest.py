"""One browser and one site for all tests of a module."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Request, Response
from forager.render.finding import INSTALL, find_browser
from forager.render.limits import RenderLimits
from forager.render.renderer import RenderedPage, Renderer
from forager.render.resources import ResourceLoader
from forager.settings import Settings
from render.pages import SITE
from servers.site import Site

AGENT = "ForagerTest/1"
LIMITS = RenderLimits(pages=3, seconds=3.0, settle_seconds=2.0, memory_mb=640, requests=30)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site(SITE)
    with site.served():
        yield site


@pytest.fixture(scope="session")
def browser_path() -> str:
    return require_browser()


def require_browser() -> str:
    """The browser of this machine; without one the test says so, and is skipped."""
    choice = find_browser(Settings(browser=os.environ.get("FORAGER_TEST_BROWSER")))
    if choice.path is not None:
        return choice.path
    if os.environ.get("FORAGER_TEST_REQUIRE_BROWSER"):
        pytest.fail(INSTALL)
    pytest.skip(f"{choice.reason}, so rendering is not tested. {INSTALL}")


class Rendering:
    """A renderer whose requests are sent by a client directly, without budgets."""

    def __init__(self, site: Site, client: Client, renderer: Renderer) -> None:
        self.site = site
        self.client = client
        self.renderer = renderer
        self.loader = ResourceLoader.of(client, allow, LIMITS, user_agent=AGENT)

    async def page(self, path: str, **how: object) -> RenderedPage:
        document: Response = await self.client.fetch(Request(self.site.url + path))
        return await self.renderer.render(document, self.loader, **how)  # type: ignore[arg-type]


async def allow(url: str) -> None:
    """Every URL may be fetched."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rendering(browser_path: str, site: Site) -> AsyncIterator[Rendering]:
    guard = GuardPolicy(allow_private=True)
    async with (
        Client(ClientOptions(user_agent=AGENT, guard=guard)) as client,
        Renderer(browser_path, LIMITS) as renderer,
    ):
        yield Rendering(site, client, renderer)
