"""The bundled site, served by the dashboard's own process once somebody wants to crawl it."""

from __future__ import annotations

from contextlib import ExitStack

from forager.crawl.options import CrawlOptions, crawl_options
from forager.demo.server import demo_site

SOURCE = "demo"
# slow enough to be watched
DELAY = 0.4


class DemoSite:
    """Begins to serve when it is first asked for, and serves as long as the process lives."""

    def __init__(self) -> None:
        self._serving = ExitStack()
        self._url: str | None = None

    def url(self) -> str:
        if self._url is None:
            self._url = self._serving.enter_context(demo_site())
        return self._url

    def options(self) -> CrawlOptions:
        return crawl_options(
            {"urls": [self.url()], "allow_private": True, "delay": DELAY, "concurrency": 1}
        )

    def close(self) -> None:
        self._serving.close()
        self._url = None
