"""Rows for the lake, and what of them is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forager.db.database import Database
from forager.row_files import load_pyarrow
from products.rows import add_product
from support.sql import execute


async def add_prices(database: Database, product_id: int, count: int, ago: str = "1 day") -> None:
    """Changes of one price, a second apart, the newest that long ago."""
    await execute(
        database,
        """
            INSERT INTO price_history (product_id, price, currency, availability, recorded_at)
            SELECT %s, 100 + n %% 7, 'EUR', 'in_stock',
                   now() - %s::interval - n * interval '1 second'
              FROM generate_series(0, %s - 1) AS n
             ORDER BY random()
            """,
        product_id,
        ago,
        count,
    )


async def aged_product(database: Database, number: int) -> int:
    """A product that was there yesterday, without prices."""
    product_id = await add_product(database, number)
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM price_history WHERE product_id = %s", (product_id,))
        await connection.execute(
            "UPDATE products SET updated_at = now() - interval '1 day' WHERE id = %s", (product_id,)
        )
    return product_id


async def stored_prices(database: Database) -> list[int]:
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT id FROM price_history ORDER BY id")
        return [row[0] for row in await cursor.fetchall()]


def rows_in(folder: Path, dataset: str) -> list[dict[str, Any]]:
    """Every row of a dataset, read by pyarrow alone."""
    parquet = load_pyarrow("pyarrow.parquet")
    files = sorted((folder / dataset).glob("*.parquet"))
    return [row for file in files for row in parquet.ParquetFile(file).read().to_pylist()]


def ids_in(folder: Path, dataset: str) -> list[int]:
    return sorted(row["id"] for row in rows_in(folder, dataset))
