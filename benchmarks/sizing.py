"""Requirements of many products: measured rows and bytes, requests, proxies and costs.

    python -m benchmarks.sizing [--products 10000]

Fills a separate embedded PostgreSQL in a temporary folder as the parse stage does, and measures
and extrapolates the size of its rows. Writes `benchmarks/results/sizing.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.bench_products import Shop, dearer, load_tasks, unchanged
from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.logs import configure_logs

DAY = 86_400
GB = 1e9

# what grows with the products
TABLES = ("products", "crawl_tasks", "price_history", "images", "extractions", "task_attempts",
          "catalog_events")  # fmt: skip
# lists and searches use them; crawling does not
DROPPABLE = (
    "products_name_idx", "products_price_idx", "products_availability_idx",
    "products_brand_idx", "products_category_idx", "products_tsv_idx", "products_created_idx",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions that are not measured. Change them to match your installation."""

    changes_a_year: float = 12  # of the price, for each product
    images: float = 5
    history_days: float = 90  # of attempts, extractions and events
    page_kb: float = 40  # of one response, compressed
    visits_archived: float = 2  # responses kept for each product
    image_kb: float = 60
    bloat: float = 1.4  # fill factors and dead rows, which VACUUM FULL removes
    hot: float = 0.05  # share of the database that should be in memory
    visit_cpu_ms: float = 20  # of a worker: fetch, archive, read
    write_cpu_ms: float = 0.6  # of PostgreSQL
    busy: float = 0.5  # how much of a core may be used on average
    proxied: float = 0.2  # share of the requests that need a proxy
    proxy_rate: float = 0.2  # requests/s through one proxy, over all hosts
    core_gb: float = 4  # memory per core
    core_dollars: float = 12.0  # a core for a month
    disk_dollars: float = 0.10  # a GB of SSD for a month
    object_dollars: float = 0.02  # a GB in an object store for a month
    proxy_dollars: float = 1.0  # a data center proxy for a month
    proxy_gb_dollars: float = 0.5  # a GB through it


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    products: float
    every_days: float
    copies: int = 1  # copies of the database, including a standby
    is_lean: bool = False  # without the droppable indexes and images, a week of history


PLANS = (
    Plan("100 thousand, daily", 1e5, 1),
    Plan("1 million, daily", 1e6, 1),
    Plan("10 million, weekly", 1e7, 7, copies=2),
    Plan("100 million, monthly", 1e8, 30, copies=2),
    Plan("100 million, monthly, lean", 1e8, 30, copies=2, is_lean=True),
    Plan("100 million, weekly, lean", 1e8, 7, copies=2, is_lean=True),
)


@dataclass(frozen=True, slots=True)
class RowSize:
    """Bytes per row, of the table with TOAST data and of each index."""

    heap: float
    indexes: dict[str, float]

    def total(self, without: Sequence[str] = ()) -> float:
        kept = (size for name, size in self.indexes.items() if name not in without)
        return self.heap + sum(kept)


async def fill(url: str, products: int) -> None:
    """Write all products as new, then unchanged, then with another price."""
    load_tasks(url, products)
    async with Database(url) as database:
        shop = Shop(database, products)
        for change in (unchanged, unchanged, dearer):
            await shop.visit(500, change)
        async with database.connection() as connection:
            await connection.execute(
                """
                INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                           http_status, worker_id, started_at, duration_ms, size,
                                           segment, segment_offset, segment_length)
                SELECT id, domain_id, stage, 1, 1, 'ok', 200, gen_random_uuid(), now(), 100,
                       200000, 'tasks-1', id * 20000, 20000
                  FROM crawl_tasks, unnest('{download,parse}'::text[]) AS stage
                """
            )


def measure(url: str) -> dict[str, RowSize]:
    with psycopg.connect(url, autocommit=True) as connection:
        sizes = {}
        for table in TABLES:
            connection.execute(f"VACUUM FULL ANALYZE {table}".encode())
            found = connection.execute(
                f"SELECT count(*), pg_table_size('{table}') FROM {table}".encode()
            ).fetchone()
            assert found is not None
            rows = found[0]
            indexes = connection.execute(
                "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid)"
                " FROM pg_index WHERE indrelid = %s::regclass ORDER BY 2 DESC",
                (table,),
            ).fetchall()
            named = {name: size / rows for name, size in indexes}
            sizes[table] = RowSize(found[1] / rows, named)
    return sizes


def rows_of(plan: Plan, given: Assumptions) -> dict[str, float]:
    """Rows of each table after a year."""
    visits = plan.products / plan.every_days * given.history_days
    rows = {
        "products": plan.products,
        "crawl_tasks": plan.products,
        "price_history": plan.products * (1 + given.changes_a_year),
        "images": 0 if plan.is_lean else plan.products * given.images,
        "extractions": visits,
        "task_attempts": visits * 2,
        "catalog_events": plan.products * given.changes_a_year * given.history_days / 365,
    }
    if plan.is_lean:  # a week of history is enough to investigate errors
        for name in ("extractions", "task_attempts", "catalog_events"):
            rows[name] *= 7 / given.history_days
    return rows


def needs(plan: Plan, sizes: dict[str, RowSize], given: Assumptions) -> list[str]:
    rows = rows_of(plan, given)
    without = DROPPABLE if plan.is_lean else ()
    database = sum(rows[name] * sizes[name].total(without) for name in TABLES) * given.bloat
    rate = plan.products / (plan.every_days * DAY)
    cores = max(2, math.ceil(rate * given.visit_cpu_ms / 1000 / given.busy))
    writing = rate * given.write_cpu_ms / 1000 / given.busy
    remembering = database / GB * given.hot / given.core_gb
    database_cores = max(2, math.ceil(max(writing, remembering)))
    proxies = math.ceil(rate * given.proxied / given.proxy_rate)
    through_proxies = rate * given.proxied * 30 * DAY * given.page_kb * 1000
    files = plan.products * given.visits_archived * given.page_kb * 1000
    files += rows["images"] * given.image_kb * 1000
    dollars = (
        (cores + database_cores * plan.copies) * given.core_dollars
        + database * plan.copies / GB * given.disk_dollars
        + files / GB * given.object_dollars
        + proxies * given.proxy_dollars
        + through_proxies / GB * given.proxy_gb_dollars
    )
    return [
        plan.name, f"{sum(rows.values()) / 1e6:,.1f}", f"{database / GB:,.0f}",
        f"{files / GB:,.0f}", f"{rate:,.1f}", str(cores), str(database_cores), f"{proxies:,}",
        f"{dollars:,.0f}",
    ]  # fmt: skip


def report_on(sizes: dict[str, RowSize], report: Report) -> None:
    given = Assumptions()
    report.heading("Bytes of a row")
    report.text("Size of each table including TOAST data, after VACUUM FULL.")
    report.table(
        ("table", "row", "indexes", "sum"),
        [
            (name, f"{size.heap:.0f}", f"{sum(size.indexes.values()):.0f}", f"{size.total():.0f}")
            for name, size in sizes.items()
        ],
    )
    report.heading("Indexes of products")
    report.text("A marked index is used by lists and searches, but not by crawling.")
    report.table(
        ("index", "bytes per product", "can be dropped"),
        [
            (name, f"{size:.0f}", "yes" if name in DROPPABLE else "")
            for name, size in sizes["products"].indexes.items()
        ],
    )
    report.heading("Assumptions")
    report.table(
        ("assumption", "value"),
        [(name.replace("_", " "), f"{getattr(given, name):g}") for name in given.__slots__],
    )
    report.heading("Requirements after a year")
    report.table(
        ("products", "million rows", "database GB", "files GB", "requests/s", "worker cores",
         "database cores", "proxies", "dollars per month"),
        [needs(plan, sizes, given) for plan in PLANS],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--products", type=int, default=10_000)
    products = parser.parse_args().products
    configure_logs("warning")
    with tempfile.TemporaryDirectory() as folder, join_server(Path(folder)) as use:
        report = Report("Sizing")
        report.text(f"Generated by `python -m benchmarks.sizing` from {products:,} products.")
        report.table(("machine", ""), describe_machine(Path(folder)))
        asyncio.run(fill(use.url, products))
        report_on(measure(use.url), report)
    print(report.write("sizing.md"))


if __name__ == "__main__":
    main()
