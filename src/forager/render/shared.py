"""The browser of a process, which all its crawls or tasks share."""

from __future__ import annotations

from typing import Protocol, Self

from forager.fetch.redirects import Fetcher
from forager.render.limits import RenderLimits
from forager.render.renderer import Renderer
from forager.render.resources import AssetCaches, ResourceLoader


class CheckingFetcher(Fetcher, Protocol):
    """Fetches what a page loads, and checks addresses that the browser opens itself."""

    async def check(self, url: str) -> None:
        """Raise an error for a URL that may not be fetched."""


class SharedBrowser:
    """Starts with the first page that needs it. Use it as a context manager."""

    def __init__(self, path: str, limits: RenderLimits) -> None:
        self.renderer = Renderer(path, limits)
        self._limits = limits
        self._caches = AssetCaches(limits)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.renderer.__aexit__(None, None, None)

    def loader(self, fetcher: CheckingFetcher, owner: str, user_agent: str) -> ResourceLoader:
        """What the pages of an owner load, with a cache that no other owner shares."""
        cache = self._caches.of_owner(owner)
        return ResourceLoader(fetcher, fetcher.check, self._limits, cache, user_agent, owner)
