"""Every row is in the lake once, despite late commits, deletions and kills."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from analytics.killing import kill_after
from analytics.lake_rows import add_prices, aged_product, ids_in, rows_in, stored_prices
from forager.analytics import store
from forager.analytics.lake import LakeState, lake_folder, read_state, sole_writer, write_state
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.errors import ForagerError, NotAllowed
from forager.row_files import load_pyarrow
from forager.settings import Settings
from support.sql import execute

PROCESS = Path(__file__).with_name("sync_process.py")


@pytest.fixture
def folder(settings: Settings) -> Path:
    return lake_folder(settings)


async def test_an_empty_database_makes_an_empty_lake(
    database: Database, settings: Settings, folder: Path
) -> None:
    done = await sync(database, settings)
    assert (set(done.rows.values()), done.files) == ({0}, 0)
    state = read_state(folder)
    assert state is not None
    assert state.complete_until == done.complete_until


async def test_only_months_that_changed_are_written(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 250)
    await add_prices(database, product_id, 5, ago="90 days")
    first = await sync(database, settings)
    assert (first.rows["price_history"], first.rows["products"]) == (255, 1)
    written = {path: path.stat().st_mtime_ns for path in folder.glob("*/*.parquet")}
    assert set((await sync(database, settings)).rows.values()) == {0}
    assert written == {path: path.stat().st_mtime_ns for path in folder.glob("*/*.parquet")}
    await add_prices(database, product_id, 30, ago="1 second")
    assert (await sync(database, settings)).rows["price_history"] == 30
    assert ids_in(folder, "price_history") == await stored_prices(database)
    old = [path for path, time in written.items() if path.stat().st_mtime_ns == time]
    assert any(path.parent.name == "price_history" for path in old)


async def test_rows_that_were_deleted_stay_in_the_lake(
    database: Database, settings: Settings, folder: Path
) -> None:
    """Attempts and extractions are deleted by age, and the lake has the only copy."""
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 10, ago="1 hour")
    await sync(database, settings)
    kept = await stored_prices(database)
    await execute(database, "DELETE FROM price_history RETURNING 1")
    await add_prices(database, product_id, 2, ago="1 second")
    await sync(database, settings)
    assert ids_in(folder, "price_history") == sorted(kept + await stored_prices(database))


async def test_a_row_that_is_committed_late_is_not_missed(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    insert = "INSERT INTO price_history (product_id, price) VALUES (%s, 1)"
    async with database.connection() as late:
        async with late.transaction():
            await late.execute(insert, (product_id,))
            assert (await sync(database, settings)).rows["price_history"] == 0
        assert (await sync(database, settings)).rows["price_history"] == 1
    assert ids_in(folder, "price_history") == await stored_prices(database)


async def test_rows_of_the_future_wait(database: Database, settings: Settings) -> None:
    product_id = await aged_product(database, 1)
    await execute(
        database,
        "INSERT INTO price_history (product_id, recorded_at) VALUES (%s, now() + '1 hour')",
        product_id,
    )
    assert (await sync(database, settings)).rows["price_history"] == 0


async def test_values_arrive_as_they_were(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    name, brand = 'Lamp "Ø",\nlarge\r\n\\N', "NA"
    await execute(
        database,
        """
            UPDATE products SET product_name = %s, brand = %s, category = '', sku = NULL,
                                price = 12.3456, rating = 4.25, updated_at = %s
             WHERE id = %s
            """,
        name,
        brand,
        datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC),
        product_id,
    )
    await sync(database, settings)
    [row] = rows_in(folder, "products")
    assert (row["name"], row["brand"], row["category"], row["sku"]) == (name, brand, "", None)
    assert (row["price"], row["rating"]) == (Decimal("12.3456"), Decimal("4.25"))
    assert row["at"] == datetime(2026, 2, 28, 23, 59, 59, 999_999, UTC)
    assert row["domain"] == "shop.example"


async def test_each_month_has_one_file(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    times = ["2025-12-31 23:59:59.999999Z", "2026-01-01 00:00:00Z", "2026-03-05 12:00:00Z"]
    await execute(
        database,
        "INSERT INTO price_history (product_id, recorded_at) SELECT %s, unnest(%s::timestamptz[])",
        product_id,
        times,
    )
    await sync(database, settings)
    found = sorted(path.name for path in (folder / "price_history").iterdir())
    assert found == ["2025-12.parquet", "2026-01.parquet", "2026-03.parquet"]


async def test_pages_and_extractions_come_too(
    database: Database, settings: Settings, folder: Path
) -> None:
    await execute(
        database,
        """
            WITH shop AS (
                INSERT INTO domains (domain_name, base_url)
                VALUES ('shop.example', 'https://shop.example') RETURNING id
            ), proxy AS (
                INSERT INTO proxies (proxy_url, proxy_port) VALUES ('proxy.example', 8080)
                RETURNING id
            ), pages AS (
                INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                           proxy_id, size, finished_at)
                SELECT 1, shop.id, stage, 1, 1, 'ok', proxy.id, 5, now() - interval '1 day'
                  FROM shop, proxy, unnest('{download,parse}'::text[]) AS stage
            )
            INSERT INTO extractions (task_id, domain_id, url, parser, parser_version, outcome,
                                     created_at)
            SELECT 1, id, 'https://shop.example/', 'generic', '1', 'ok', now() - interval '1 day'
              FROM shop
            """,
    )
    await sync(database, settings)
    [page] = rows_in(folder, "pages")
    assert (page["domain"], page["proxy"]) == ("shop.example", "http://proxy.example:8080")
    [extraction] = rows_in(folder, "extractions")
    assert (extraction["parser"], extraction["confidence"]) == ("generic", None)


async def test_a_changed_product_is_replaced_within_its_month(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    folder.mkdir(parents=True)
    change = "UPDATE products SET price = %s, updated_at = %s::timestamptz RETURNING 1"
    for price, at in ((11, "2026-01-05"), (12, "2026-01-06"), (13, "2026-02-01")):
        await execute(database, change, price, at)
        write_state(
            folder, LakeState((await _identity(database)), datetime(2026, 1, 1, tzinfo=UTC))
        )
        await sync(database, settings)
    assert ids_in(folder, "products") == [product_id, product_id]
    assert [row["price"] for row in rows_in(folder, "products")] == [Decimal(12), Decimal(13)]


async def _identity(database: Database) -> str:
    return await database.run(store.select_identity)


async def test_a_killed_sync_is_repeated(
    database: Database, database_url: str, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 400)
    for steps in (0, 1, 3, 5):
        await kill_after(steps, PROCESS, database_url, settings.home)
    assert read_state(folder) is None
    (folder / ".rows-left").mkdir()
    await sync(database, settings)
    assert list(folder.glob(".rows-*")) == []
    assert ids_in(folder, "price_history") == await stored_prices(database)
    assert ids_in(folder, "products") == [product_id]


async def test_files_of_an_earlier_version_are_merged(
    database: Database, settings: Settings, folder: Path
) -> None:
    """Several files for each month, some without newer columns; also of months without new rows."""
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 10)
    await sync(database, settings)
    [file] = folder.glob("price_history/*.parquet")
    parquet = load_pyarrow("pyarrow.parquet")
    table = parquet.ParquetFile(file).read().drop_columns(["availability"])
    for month in (file.stem, "2020-01"):
        earlier = folder / "price_history" / f"month={month}"
        earlier.mkdir()
        for number in range(2):
            parquet.write_table(table, earlier / f"{number:08}.parquet")
    (folder / "state.json").rename(folder / "manifest.json")
    await sync(database, settings)
    assert sorted(path.name for path in (folder / "price_history").iterdir()) == [
        "2020-01.parquet", file.name,
    ]  # fmt: skip
    assert not (folder / "manifest.json").exists()
    found = rows_in(folder, "price_history")
    assert Counter(row["id"] for row in found) == dict.fromkeys(await stored_prices(database), 2)
    assert Counter(row["availability"] for row in found) == {None: 10, "in_stock": 10}


async def test_one_writer_at_a_time(database: Database, settings: Settings, folder: Path) -> None:
    with sole_writer(folder), pytest.raises(NotAllowed, match="another sync"):
        await sync(database, settings)
    await sync(database, settings)


async def test_a_lake_belongs_to_one_database(
    database: Database, settings: Settings, folder: Path
) -> None:
    await sync(database, settings)
    write_state(folder, LakeState("1/1", datetime.now(UTC)))
    with pytest.raises(NotAllowed, match="another database"):
        await sync(database, settings)
    for broken in ("", "{}", "[]", '{"database": 1}'):
        (folder / "state.json").write_text(broken)
        with pytest.raises(ForagerError, match="cannot be read"):
            await sync(database, settings)
