"""Every row is in the lake once, despite late commits and kills."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg import sql

from analytics.killing import kill_after
from analytics.lake_rows import add_prices, aged_product, ids_in, rows_in, stored_prices
from forager.analytics import store
from forager.analytics import sync as merging
from forager.analytics.lake import lake_folder, read_manifest, sole_writer
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings
from support.sql import execute

PROCESS = Path(__file__).with_name("sync_process.py")


@pytest.fixture
def folder(settings: Settings) -> Path:
    return lake_folder(settings)


@pytest.fixture
def no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of this moment count at once."""
    monkeypatch.setattr(store, "LAG_SECONDS", 0)


async def test_an_empty_database_makes_an_empty_lake(
    database: Database, settings: Settings, folder: Path
) -> None:
    done = await sync(database, settings)
    assert set(done.rows.values()) == {0}
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.files == ()
    assert manifest.complete_until == done.complete_until


async def test_only_what_is_new_is_copied(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 250)
    first = await sync(database, settings, chunk=100)
    assert first.rows["price_history"] == 250
    assert first.rows["products"] == 1
    assert set((await sync(database, settings)).rows.values()) == {0}
    await add_prices(database, product_id, 30, ago="1 hour")
    assert (await sync(database, settings)).rows["price_history"] == 30
    assert ids_in(folder, "price_history") == await stored_prices(database)


async def test_rows_of_one_moment_are_cut_anywhere(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await execute(
        database,
        """
            INSERT INTO price_history (product_id, price, recorded_at)
            SELECT %s, n, now() - interval '1 day' FROM generate_series(1, 25) AS n
            """,
        product_id,
    )
    await sync(database, settings, chunk=4)
    assert ids_in(folder, "price_history") == await stored_prices(database)


@pytest.mark.usefixtures("no_lag")
async def test_who_commits_late_is_not_forgotten(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    insert = "INSERT INTO price_history (product_id, price) VALUES (%s, 1)"
    async with database.connection() as late:
        async with late.transaction():
            await late.execute(insert, (product_id,))
            await execute(database, insert, product_id)
            # the quick one is younger than the late one: both wait
            assert (await sync(database, settings)).rows["price_history"] == 0
        assert (await sync(database, settings)).rows["price_history"] == 2
    assert ids_in(folder, "price_history") == await stored_prices(database)


async def test_the_newest_rows_wait_a_moment(database: Database, settings: Settings) -> None:
    product_id = await aged_product(database, 1)
    await execute(
        database,
        "INSERT INTO price_history (product_id, recorded_at) VALUES (%s, now() + '1 hour')",
        product_id,
    )
    assert (await sync(database, settings)).rows["price_history"] == 0


async def test_sessions_that_cannot_be_seen_are_counted(database: Database) -> None:
    role = sql.Identifier(f"blind_{uuid4().hex}")
    async with database.connection() as other, database.connection() as connection:
        await other.execute("SELECT 1")
        await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(role))
        try:
            await connection.execute(sql.SQL("SET ROLE {}").format(role))
            assert (await store.select_horizon(connection))[1] >= 1
            await connection.execute("RESET ROLE")
            assert (await store.select_horizon(connection))[1] == 0
        finally:
            await connection.execute("RESET ROLE")
            await connection.execute(sql.SQL("DROP ROLE {}").format(role))


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


async def test_each_month_has_its_folder(
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
    found = sorted(path.parent.name for path in (folder / "price_history").glob("*/*.parquet"))
    assert found == ["month=2025-12", "month=2026-01", "month=2026-03"]


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


async def test_a_changed_product_comes_again(
    database: Database, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await sync(database, settings)
    await execute(
        database, "UPDATE products SET price = 11, updated_at = now() - interval '1 hour'"
    )
    await sync(database, settings)
    assert ids_in(folder, "products") == [product_id, product_id]
    assert [row["price"] for row in rows_in(folder, "products")] == [Decimal(10), Decimal(11)]


async def test_a_killed_sync_is_gone_on_with(
    database: Database, database_url: str, settings: Settings, folder: Path
) -> None:
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 400)
    for steps in (0, 1, 3, 5):
        await kill_after(steps, PROCESS, database_url, settings.home, "20")
    # as if it had been killed between a file and its manifest
    stray = folder / "price_history" / "month=2020-01" / "00000001.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half")
    await sync(database, settings, chunk=20)
    assert not stray.exists()
    assert ids_in(folder, "price_history") == await stored_prices(database)
    assert ids_in(folder, "products") == [product_id]


async def test_small_files_become_one(
    database: Database,
    settings: Settings,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(merging, "MOST_FILES", 3)
    product_id = await aged_product(database, 1)
    await execute(
        database,
        """
            INSERT INTO price_history (product_id, recorded_at)
            SELECT %s, timestamptz '2026-01-10 00:00Z' + n * interval '1 second'
              FROM generate_series(1, 50) AS n
            """,
        product_id,
    )
    await sync(database, settings, chunk=10)
    manifest = read_manifest(folder)
    assert manifest is not None
    [file] = manifest.of("price_history")
    assert file.rows == 50
    assert len(manifest.superseded) == 5
    assert all((folder / path).exists() for path in manifest.superseded)
    assert ids_in(folder, "price_history") == await stored_prices(database)
    monkeypatch.setattr(merging, "KEPT", timedelta(0))
    await sync(database, settings)
    assert [path.name for path in (folder / "price_history").glob("*/*")] == [Path(file.path).name]


async def test_one_writer_at_a_time(database: Database, settings: Settings, folder: Path) -> None:
    with sole_writer(folder), pytest.raises(NotAllowed, match="another sync"):
        await sync(database, settings)
    await sync(database, settings)


async def test_a_lake_belongs_to_one_database(
    database: Database, settings: Settings, folder: Path
) -> None:
    await sync(database, settings)
    path = folder / "manifest.json"
    text = path.read_text()
    manifest = read_manifest(folder)
    assert manifest is not None
    path.write_text(text.replace(manifest.database, "1/1"))
    with pytest.raises(NotAllowed, match="another database"):
        await sync(database, settings)
    for broken in ("", "{}", "[]", '{"format": 2}', '{"format": 1}'):
        path.write_text(broken)
        with pytest.raises(ForagerError, match="cannot be read"):
            await sync(database, settings)
