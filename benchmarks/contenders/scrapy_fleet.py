"""Scrapy on many polite sites in one process: one slot per host, a delay of one second.

Usage: FOLDER SECONDS URL... Pages are stored as JSON lines, the queue on disk (JOBDIR). After this
time, it stops.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

FOLDER, SECONDS, *URLS = sys.argv[1:]


class Sites(scrapy.Spider):
    name = "sites"
    start_urls = URLS
    links = LinkExtractor()

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url, "status": response.status, "body": response.text}
        for link in self.links.extract_links(response):
            yield response.follow(link, callback=self.parse)


process = CrawlerProcess(
    {
        "JOBDIR": f"{FOLDER}/job",
        "FEEDS": {f"{FOLDER}/pages.jsonl": {"format": "jsonlines"}},
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 2 * len(URLS),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 1,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "CLOSESPIDER_TIMEOUT": int(SECONDS),
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
)
crawler = process.create_crawler(Sites)
started = time.perf_counter()
process.crawl(crawler)
process.start()
pages = crawler.stats.get_value("item_scraped_count", 0)
was_ended = crawler.stats.get_value("finish_reason") == "closespider_timeout"
seconds = time.perf_counter() - started
print(json.dumps({"pages": pages, "seconds": seconds, "was_ended": was_ended}))
