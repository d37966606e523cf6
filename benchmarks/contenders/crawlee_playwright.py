"""Crawlee with its Playwright crawler and storage in files. Usage: URL FOLDER BROWSER."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time

from crawlee import ConcurrencySettings
from crawlee.crawlers import PlaywrightCrawler, PlaywrightCrawlingContext

URL, BROWSER = sys.argv[1], sys.argv[3]
# docsify writes anchors as queries; the pattern must match from the start of the URL
ANCHORS = re.compile(r".*\?id=")


async def main() -> None:
    pages = 0
    crawler = PlaywrightCrawler(
        respect_robots_txt_file=True,
        configure_logging=False,
        browser_type="chromium",
        browser_launch_options={"executable_path": BROWSER, "chromium_sandbox": False},
        concurrency_settings=ConcurrencySettings(
            min_concurrency=2, max_concurrency=2, desired_concurrency=2
        ),
    )

    @crawler.router.default_handler
    async def handle(context: PlaywrightCrawlingContext) -> None:
        nonlocal pages
        # wait until the network is idle, as Forager does
        await context.page.wait_for_load_state("networkidle")
        pages += 1
        await context.push_data({"url": context.request.url, "body": await context.page.content()})
        await context.enqueue_links(strategy="same-hostname", exclude=[ANCHORS])

    started = time.perf_counter()
    await crawler.run([URL])
    print(json.dumps({"pages": pages, "seconds": time.perf_counter() - started}))


logging.disable(logging.CRITICAL)
asyncio.run(main())
