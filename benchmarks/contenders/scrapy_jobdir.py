"""Scrapy with its durable queue (JOBDIR), storing pages as JSON lines.

Usage: URL FOLDER [markdown]. With the last word, pages are stored as markdown.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

URL, FOLDER = sys.argv[1:3]
MARKDOWN = "markdown" in sys.argv[3:]


def stored(html: str) -> str:
    if not MARKDOWN:
        return html
    from html_to_markdown import convert

    result = convert(html)
    return result if isinstance(result, str) else result.content


class Site(scrapy.Spider):
    name = "site"
    start_urls = [URL]  # noqa: RUF012 - Scrapy's way
    links = LinkExtractor(allow=re.escape(f"http://{urlsplit(URL).netloc}/"))

    def parse(self, response: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.TextResponse):
            return
        yield {"url": response.url, "status": response.status, "body": stored(response.text)}
        for link in self.links.extract_links(response):
            yield response.follow(link, callback=self.parse)


process = CrawlerProcess(
    {
        "JOBDIR": f"{FOLDER}/job",
        "FEEDS": {f"{FOLDER}/pages.jsonl": {"format": "jsonlines"}},
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
)
crawler = process.create_crawler(Site)
started = time.perf_counter()
process.crawl(crawler)
process.start()
pages = crawler.stats.get_value("item_scraped_count", 0)
print(json.dumps({"pages": pages, "seconds": time.perf_counter() - started}))
