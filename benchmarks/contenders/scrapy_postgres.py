"""Scrapy doing Forager's work: durable queue, markdown, sections and a search index in PostgreSQL.

Usage: URL FOLDER DATABASE. Pages are written in batches, each in one transaction.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import scrapy
from html_to_markdown import convert
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

URL, FOLDER, DATABASE = sys.argv[1:4]
BATCH = 50
TABLES = """
    DROP SCHEMA IF EXISTS scrapy CASCADE;
    CREATE SCHEMA scrapy;
    CREATE TABLE scrapy.pages (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        url text NOT NULL UNIQUE, status int NOT NULL, title text, body text NOT NULL
    );
    CREATE TABLE scrapy.sections (
        page_id bigint NOT NULL REFERENCES scrapy.pages, position int NOT NULL,
        level int NOT NULL, heading text NOT NULL, content text NOT NULL, tsv tsvector NOT NULL,
        PRIMARY KEY (page_id, position)
    );
    CREATE INDEX ON scrapy.sections USING gin (tsv);
"""
INSERT_PAGE = """
    INSERT INTO scrapy.pages (url, status, title, body) VALUES (%s, %s, %s, %s)
    ON CONFLICT (url) DO UPDATE SET status = excluded.status -- Scrapy fetches the start twice
    RETURNING id
"""
INSERT_SECTION = """
    INSERT INTO scrapy.sections (page_id, position, level, heading, content, tsv)
    VALUES (%s, %s, %s, %s, %s, setweight(to_tsvector('english', %s), 'A')
                                || to_tsvector('english', %s))
    ON CONFLICT DO NOTHING
"""
HEADING = re.compile(r"(#{1,6}) (.+)")


def sections_of(markdown: str, title: str) -> list[tuple[int, str, str]]:
    """Level, heading and text of each section; a `#` in fenced code begins none."""
    found: list[tuple[int, str, list[str]]] = [(0, title, [])]
    is_code = False
    for line in markdown.split("\n"):
        is_code ^= line.startswith("```")
        if not is_code and (heading := HEADING.fullmatch(line)):
            found.append((len(heading[1]), heading[2], []))
        else:
            found[-1][2].append(line)
    return [(level, heading, "\n".join(lines).strip()) for level, heading, lines in found]


class Store:
    """Writes pages, their sections and the search vectors of these."""

    def __init__(self) -> None:
        self.batch: list[dict[str, Any]] = []

    def open_spider(self) -> None:
        self.connection = psycopg.connect(DATABASE)
        self.connection.execute(TABLES)
        self.connection.commit()

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self.batch.append(item)
        if len(self.batch) >= BATCH:
            self.write()
        return item

    def close_spider(self) -> None:
        self.write()
        self.connection.close()

    def write(self) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            pages = [(i["url"], i["status"], i["title"], i["markdown"]) for i in self.batch]
            ids = []
            if pages:
                cursor.executemany(INSERT_PAGE, pages, returning=True)
                ids = [row[0] for result in cursor.results() for row in result.fetchall()]
            rows = [
                (page, position, *section, section[1], section[2])
                for page, item in zip(ids, self.batch, strict=True)
                for position, section in enumerate(sections_of(item["markdown"], item["title"]))
            ]
            cursor.executemany(INSERT_SECTION, rows)
        self.batch.clear()


class Site(scrapy.Spider):
    name = "site"
    start_urls = [URL]  # noqa: RUF012 - Scrapy's way
    links = LinkExtractor(allow=re.escape(f"http://{urlsplit(URL).netloc}/"))

    def parse(self, response: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.TextResponse):
            return
        result = convert(response.text)
        yield {
            "url": response.url,
            "status": response.status,
            "title": response.css("title::text").get(default=""),
            "markdown": (result if isinstance(result, str) else result.content) or "",
        }
        for link in self.links.extract_links(response):
            yield response.follow(link, callback=self.parse)


process = CrawlerProcess(
    {
        "JOBDIR": f"{FOLDER}/job",
        "ITEM_PIPELINES": {Store: 100},
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
