"""How fast price changes come to the lake, and how fast it answers.

    python -m benchmarks.bench_analytics [--rows 1000000]

Runs an embedded PostgreSQL of its own in a temporary folder (about 1 GB), prints a report and
writes it to `benchmarks/results/analytics.md`. Needs chdb.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import psycopg
from pydantic import SecretStr

from benchmarks.machine import describe_machine
from benchmarks.report import Report
from forager.analytics.answers import answer, ask_chdb, list_queries, sources_of
from forager.analytics.lake import lake_folder, read_manifest
from forager.analytics.sync import sync
from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.logs import configure_logs
from forager.settings import Settings

PRODUCTS = 50_000
BRANDS = 500


def fill(url: str, rows: int) -> None:
    """Products with histories over a year, and as many attempts and extractions as products."""
    schema.upgrade(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO domains (domain_name, base_url)"
            " VALUES ('shop.example', 'https://shop.example')"
        )
        connection.execute(
            """
            INSERT INTO products (domain_id, url, url_hash, product_name, brand, content_hash,
                                  parser, parser_version, updated_at)
            SELECT 1, 'https://shop.example/' || n, sha256(n::text::bytea), 'Lamp ' || n,
                   'Brand ' || n %% %s, '', 'generic', '1', now() - interval '1 day'
              FROM generate_series(1, %s) AS n
            """,
            (BRANDS, PRODUCTS),
        )
        connection.execute(
            """
            INSERT INTO price_history (product_id, price, currency, availability, recorded_at)
            SELECT n %% %s + 1, 10 + random() * 90, 'EUR', 'in_stock',
                   now() - interval '1 day' - (%s - n) * interval '365 days' / %s
              FROM generate_series(1, %s) AS n
            """,
            (PRODUCTS, rows, rows, rows),
        )
        connection.execute("VACUUM ANALYZE price_history")


async def measure(url: str, home: Path, rows: int) -> list[list[str]]:
    settings = Settings(home=home, database_url=SecretStr(url))
    measured: list[list[str]] = []

    def note(what: str, began: float) -> None:
        measured.append([what, f"{time.perf_counter() - began:.2f}"])

    async with Database(url) as database:
        began = time.perf_counter()
        done = await sync(database, settings)
        manifest = read_manifest(lake_folder(settings))
        assert manifest is not None
        source = sources_of(manifest)["price_history"]
        found = await ask_chdb(f"SELECT toString(count()) FROM {source}", lake_folder(settings))
        assert found["data"] == [[str(rows)]]
        note(f"{rows:,} price rows from PostgreSQL to chdb, counted there", began)
        assert done.rows["price_history"] == rows
        began = time.perf_counter()
        await sync(database, settings)
        note("a sync that finds nothing new", began)
    for query in list_queries():
        began = time.perf_counter()
        await answer(settings, query.name, days=365)
        note(f"`{query.name}` over a year", began)
    size = sum(file.size for file in manifest.of("price_history"))
    measured.append(["bytes of a price row in the lake", f"{size / rows:.1f}"])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    configure_logs("warning")
    with tempfile.TemporaryDirectory() as folder, join_server(Path(folder) / "server") as use:
        report = Report("Analytics, measured")
        report.text("Made by `python -m benchmarks.bench_analytics`.")
        machine = [*describe_machine(Path(folder)), ("chdb", version("chdb"))]
        report.table(("machine", ""), machine)
        fill(use.url, rows)
        found = asyncio.run(measure(use.url, Path(folder) / "home", rows))
    report.heading("The lake, in seconds")
    report.text(
        f"{rows:,} changes of {PRODUCTS:,} products over a year. The first line holds everything:"
        " reading from PostgreSQL, a Parquet file for each month, the manifest, starting the"
        " engine in a process of its own, and counting. Each answer starts the engine, too."
    )
    report.table(("what", "seconds"), found)
    print(report.write("analytics.md"))


if __name__ == "__main__":
    main()
