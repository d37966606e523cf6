"""Speed of writing products in batches, and of lists and searches over 100,000 products.

    python -m benchmarks.bench_products [--products 100000] [--queries 100]

Runs a separate embedded PostgreSQL in a temporary folder (about 2 GB), prints a report and
writes it to `benchmarks/results/products.md`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import uvloop

from benchmarks.bench_search import busy_seconds
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.archive.segment import ArchiveRef
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.extract.keys import url_hash
from forager.extract.product.product import Availability, Evidence, FieldName, Product, ProductImage
from forager.logs import configure_logs
from forager.products.export import ProductExport, ProductsExportFormat, export_products
from forager.products.filters import Filters, ProductOrder
from forager.products.search import search_products
from forager.products.service import list_products, product_stats, show_product
from forager.products.writer import ParsedPage, write_pages
from forager.settings import Settings

DOMAINS = 100
REVISITED = 5
WORDS = [
    "wireless", "headphones", "brass", "lamp", "oak", "chair", "steel", "table", "cotton",
    "shirt", "leather", "boot", "garden", "hose", "ceramic", "mug", "travel", "bag", "winter",
    "jacket", "running", "shoe", "coffee", "grinder", "desk", "organiser", "bamboo", "board",
    "silent", "mouse", "mechanical", "keyboard", "portable", "speaker", "kitchen", "knife",
    "cast", "iron", "pan", "woollen", "scarf",
]  # fmt: skip
ADJECTIVES = [
    "red", "blue", "green", "black", "white", "large", "small", "light", "heavy", "classic",
    "modern", "vintage",
]  # fmt: skip
EVIDENCE = {name.value: Evidence(0.93, "json-ld:Product.offers") for name in FieldName}


def product(number: int, chance: random.Random) -> Product:
    """A typical product: a paragraph of description, five images."""
    words = chance.sample(WORDS, 3)
    described = " ".join(chance.choices([*WORDS, *ADJECTIVES], k=90))
    return Product(
        name=f"{chance.choice(ADJECTIVES).title()} {' '.join(words)} {number}",
        description=f"{described}.",
        price=Decimal(chance.randrange(300, 90_000)) / 100,
        currency="EUR",
        availability=chance.choices(list(Availability)[:6:5], weights=(9, 1))[0],
        rating=Decimal(chance.randrange(20, 51)) / 10,
        review_count=chance.randrange(2_000),
        brand=f"Brand {number % 500}",
        category=("Home", words[0].title(), words[1].title()),
        sku=f"SKU-{number:07d}",
        images=tuple(
            ProductImage(f"https://cdn.example/{number}/{position}.jpg") for position in range(5)
        ),
        evidence=EVIDENCE,
        confidence=0.9,
    )


class Shop:
    """Passes pages to the writer as the parse stage does."""

    def __init__(self, database: Database, products: int) -> None:
        chance = random.Random(1)
        self._database = database
        self._settings = Settings()
        self._products = [product(number, chance) for number in range(products)]
        self._visit = 0

    async def visit(
        self, size: int, change: Callable[[int, Product], Product], share: int = 1
    ) -> tuple[float, float, float]:
        """Products per second, median time of a batch, and processor time per product."""
        self._visit += 1
        batches = []
        busy = 0.0
        end = len(self._products) // share
        for start in range(0, end, size):
            numbers = range(start, min(start + size, end))
            for number in numbers:
                self._products[number] = change(number, self._products[number])
            pages = [self._page(number) for number in numbers]
            began = time.perf_counter()
            async with self._database.transaction() as connection:
                pid = connection.info.backend_pid
                before = busy_seconds(pid)
                await write_pages(connection, pages, settings=self._settings)
                busy += busy_seconds(pid) - before
            batches.append(time.perf_counter() - began)
        return end / sum(batches), statistics.median(batches) * 1000, busy / end * 1000

    def _page(self, number: int) -> ParsedPage:
        url = page_url(number)
        return ParsedPage(
            task_id=number + 1,
            domain_id=number % DOMAINS + 1,
            url=url,
            url_hash=url_hash(url),
            final_url=None,
            parser="generic",
            version="1",
            product=self._products[number],
            error=None,
            language="en",
            ref=ArchiveRef(f"tasks-{self._visit}", number * 20_000, 20_000),
        )


def page_url(number: int) -> str:
    return f"https://shop{number % DOMAINS}.example/product/{number}"


def load_tasks(url: str, products: int) -> None:
    schema.upgrade(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO domains (domain_name, base_url)
            SELECT 'shop' || n || '.example', 'https://shop' || n || '.example/'
              FROM generate_series(0, %s) AS n ORDER BY n
            """,
            (DOMAINS - 1,),
        )
        with connection.cursor().copy(
            "COPY crawl_tasks (domain_id, url, url_hash) FROM STDIN"
        ) as copy:
            for number in range(products):
                address = page_url(number)
                copy.write_row((number % DOMAINS + 1, address, url_hash(address)))


# --- writing ----------------------------------------------------------------------------------


def unchanged(_: int, known: Product) -> Product:
    return known


def a_tenth(number: int, known: Product) -> Product:
    """A new price for every tenth product."""
    return known if number % 10 else dearer(number, known)


def dearer(_: int, known: Product) -> Product:
    return replace(known, price=(known.price or Decimal(1)) + Decimal("0.01"))


async def write_rows(database: Database, products: int) -> list[list[str]]:
    shop = Shop(database, products)
    rounds: Sequence[tuple[str, int, Callable[[int, Product], Product]]] = (
        ("all new", 500, unchanged),
        ("nothing changed", 500, unchanged),
        ("nothing changed", 100, unchanged),
        ("a tenth of the prices changed", 500, a_tenth),
        ("a tenth of the prices changed", 100, a_tenth),
        ("all prices changed", 500, dearer),
    )
    rows: list[list[str]] = []
    for name, size, change in rounds:
        # the later rounds use only some of the products
        rate, batch, busy = await shop.visit(size, change, share=REVISITED if rows else 1)
        rows.append([name, str(size), f"{rate:,.0f}", f"{batch:.0f}", f"{busy:.2f}"])
        print(" | ".join(rows[-1]), file=sys.stderr)
    return rows


# --- reading ----------------------------------------------------------------------------------

Question = Callable[[], Awaitable[Any]]


def questions(database: Database, products: int, count: int) -> list[tuple[str, list[Question]]]:
    chance = random.Random(2)

    def times(make: Callable[[], Question]) -> list[Question]:
        return [make() for _ in range(count)]

    def listing(
        filters: Callable[[], Filters], order: ProductOrder = ProductOrder.NEWEST
    ) -> list[Question]:
        return times(lambda: _bound(list_products, database, filters(), order=order))

    def searching(words: Callable[[], str], filters: Filters | None = None) -> list[Question]:
        return times(lambda: _bound(search_products, database, words(), filters))

    def two_words() -> str:
        return " ".join(chance.sample(WORDS, 2))

    return [
        ("list: the newest", listing(Filters)),
        ("list: price range, in stock", listing(lambda: _price_range(chance))),
        ("list: a brand", listing(lambda: Filters(brand=f"Brand {chance.randrange(500)}"))),
        ("list: a domain", listing(lambda: Filters(domain=f"shop{chance.randrange(100)}.example"))),
        ("list: a category", listing(lambda: Filters(category=chance.choice(WORDS)))),
        ("list: a SKU", listing(lambda: Filters(sku=f"sku-{chance.randrange(products):07d}"))),
        ("list: with problems (none)", listing(lambda: Filters(has_problems=True))),
        ("list: the cheapest", listing(Filters, ProductOrder.CHEAPEST)),
        ("list: by name", listing(Filters, ProductOrder.NAME)),
        ("search: one word", searching(lambda: chance.choice(WORDS))),
        ("search: two words", searching(two_words)),
        ("search: three words", searching(lambda: " ".join(chance.sample(WORDS, 3)))),
        ("search: two words, in stock", searching(two_words, Filters(availability=("in_stock",)))),
        ("search: a SKU", searching(lambda: f"SKU-{chance.randrange(products):07d}")),
        ("show", times(lambda: _bound(show_product, database, str(chance.randrange(1, products))))),
        ("stats", [_bound(product_stats, database)] * 5),
    ]


def _bound(ask: Callable[..., Awaitable[Any]], *values: Any, **named: Any) -> Question:
    return lambda: ask(*values, **named)


def _price_range(chance: random.Random) -> Filters:
    low = Decimal(chance.randrange(5, 500))
    return Filters(min_price=low, max_price=low + 20, availability=("in_stock",))


async def read_rows(database: Database, products: int, count: int) -> list[list[str]]:
    rows = []
    for name, asked in questions(database, products, count):
        await _timed(asked[: len(asked) // 5 + 1])
        rows.append([name, *_spread(await _timed(asked)), str(len(asked))])
        print(" | ".join(rows[-1]), file=sys.stderr)
    return rows


async def _timed(asked: Iterable[Question]) -> list[float]:
    seconds = []
    for ask in asked:
        began = time.perf_counter()
        await ask()
        seconds.append(time.perf_counter() - began)
    return seconds


def _spread(seconds: Sequence[float]) -> list[str]:
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return [f"{value * 1000:.1f}" for value in (statistics.median(seconds), p95)]


async def export_rows(database: Database, folder: Path) -> list[list[str]]:
    rows = []
    for format_ in ProductsExportFormat:
        target = folder / f"products.{format_}"
        began = time.perf_counter()
        with target.open("wb") as file:
            written = await export_products(database, ProductExport(format_), file)
        rate = written / (time.perf_counter() - began)
        rows.append([format_.value, f"{rate:,.0f}", f"{target.stat().st_size / 2**20:.0f}"])
        target.unlink()
    return rows


# --- the report -------------------------------------------------------------------------------


async def measure(options: argparse.Namespace, url: str, folder: Path, report: Report) -> None:
    async with Database(url, name="bench", max_size=2) as database:
        written = await write_rows(database, options.products)
        async with database.connection() as connection:
            await connection.execute("VACUUM ANALYZE")
        read = await read_rows(database, options.products, options.queries)
        exported = await export_rows(database, folder)
    report.heading("Writing")
    report.text(
        f"{options.products:,} products of {DOMAINS} domains, one writer, one transaction per"
        " batch: product, price history, extraction, five images, success rates and events. Times"
        " do not include parsing the page. CPU is the processor time of the writer and its server"
        " process together, which is more reliable than elapsed time on a busy machine."
    )
    report.table(
        ("what the visit found", "batch", "products/s", "ms per batch", "CPU ms each"), written
    )
    report.heading("Reading, in milliseconds")
    report.text(f"20 rows of {options.products:,}, one query at a time, with a warm cache.")
    report.table(("query", "median", "p95", "queries"), read)
    report.heading("Files")
    report.table(("format", "rows/s", "MB"), exported)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    configure_logs("critical")
    report = Report("Products, measured")
    with tempfile.TemporaryDirectory(prefix="forager-bench-") as folder:
        machine = describe_machine(Path(folder))
        with join_server(Path(folder)) as use:
            report.text("Generated by `python -m benchmarks.bench_products`.")
            report.table(("machine", ""), machine)
            load_tasks(use.url, options.products)
            uvloop.run(measure(options, use.url, Path(folder), report))
    print(report.write("products.md"), end="")


if __name__ == "__main__":
    main()
