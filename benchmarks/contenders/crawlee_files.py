"""Crawlee with its Parsel crawler and storage in files (CRAWLEE_STORAGE_DIR). Usage: URL."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext

URL = sys.argv[1]


async def main() -> None:
    pages = 0
    crawler = ParselCrawler(
        respect_robots_txt_file=True,
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(
            min_concurrency=64, max_concurrency=64, desired_concurrency=64
        ),
    )

    @crawler.router.default_handler
    async def handle(context: ParselCrawlingContext) -> None:
        nonlocal pages
        pages += 1
        body = await context.http_response.read()
        await context.push_data({"url": context.request.url, "body": body.decode()})
        await context.enqueue_links(strategy="same-hostname")

    started = time.perf_counter()
    await crawler.run([URL])
    print(json.dumps({"pages": pages, "seconds": time.perf_counter() - started}))


logging.disable(logging.CRITICAL)
asyncio.run(main())
