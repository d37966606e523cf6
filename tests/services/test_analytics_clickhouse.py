"""Loading the lake into a ClickHouse server: months are replaced, and every row is there once."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pydantic import SecretStr

from analytics.lake_rows import add_prices, aged_product, ids_in
from analytics.site_rows import add_job, settle
from forager.analytics.answers import answer
from forager.analytics.checks import check_clickhouse
from forager.analytics.clickhouse import ClickHouse, connected
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.checks import Level
from forager.cli.main import run
from forager.db.database import Database
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings
from services.servers.clickhouse import ClickHouseServer
from support.sql import execute


class Killed(BaseException):
    pass


@pytest.fixture
def name(clickhouse: ClickHouseServer) -> Iterator[str]:
    """A database of the server's."""
    name = f"test_{uuid4().hex}"
    clickhouse.run(f"CREATE DATABASE {name}")
    yield name
    clickhouse.run(f"DROP DATABASE {name}")


@pytest.fixture
def settings(settings: Settings, clickhouse: ClickHouseServer, name: str) -> Settings:
    return settings.model_copy(update={"clickhouse_url": SecretStr(clickhouse.url(name))})


@pytest.fixture
async def rows(database: Database) -> int:
    """Prices in two months, and pages of site crawls."""
    product_id = await aged_product(database, 1)
    await add_prices(database, product_id, 60)
    await add_prices(database, product_id, 40, ago="60 days")
    await settle(database, await add_job(database), 1, 10)
    return 100


def counts(clickhouse: ClickHouseServer, name: str) -> dict[str, int]:
    return {
        table: int(clickhouse.run(f"SELECT count() FROM forager_{table}", name))
        for table in ("products", "price_history", "pages", "extractions")
    }


async def test_a_sync_loads_the_months_that_changed(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    done = await sync(database, settings)
    assert done.loaded == rows + 10 + 1
    assert counts(clickhouse, name) == {
        "products": 1, "price_history": rows, "pages": 10, "extractions": 0,
    }  # fmt: skip
    assert (await sync(database, settings)).loaded == 0
    found = await answer(settings, "price-changes")
    assert found.complete_until is not None
    assert found.complete_until >= done.complete_until
    await execute(
        database,
        "INSERT INTO price_history (product_id, price) SELECT id, 5 FROM products RETURNING 1",
    )
    loaded = (await sync(database, settings)).loaded
    assert loaded is not None
    assert 0 < loaded < rows
    assert counts(clickhouse, name)["price_history"] == rows + 1


async def test_the_doctor_looks_at_the_server(
    database: Database, settings: Settings, rows: int
) -> None:
    found = await check_clickhouse(database, settings)
    assert (found.level, found.next_step) == (Level.WARN, "Run forager analytics sync.")
    done = await sync(database, settings)
    assert rows
    found = await check_clickhouse(database, settings)
    assert found.level is Level.OK
    assert f"{done.complete_until:%Y-%m-%d %H:%M}" in found.message
    away = SecretStr("clickhouse://someone:private@127.0.0.1:1/nowhere")
    found = await check_clickhouse(database, settings.model_copy(update={"clickhouse_url": away}))
    assert found.level is Level.FAIL
    assert "private" not in f"{found.message} {found.next_step}"


async def test_killed_before_the_month_is_replaced(
    database: Database,
    settings: Settings,
    clickhouse: ClickHouseServer,
    name: str,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    insert = ClickHouse.insert

    async def insert_and_die(self: ClickHouse, *given: object) -> None:
        await insert(self, *given)  # type: ignore[arg-type]
        raise Killed

    monkeypatch.setattr(ClickHouse, "insert", insert_and_die)
    for _ in range(2):
        with pytest.raises(Killed):
            await sync(database, settings)
    assert set(counts(clickhouse, name).values()) == {0}
    monkeypatch.undo()
    assert (await answer(settings, "price-changes")).complete_until is None
    assert (await sync(database, settings)).loaded == rows + 10 + 1
    assert counts(clickhouse, name)["price_history"] == rows
    assert counts(clickhouse, name)["products"] == 1
    left = clickhouse.run(
        "SELECT count() FROM system.tables WHERE name LIKE 'forager%staged'", name
    )
    assert left.strip() == "0"


async def test_a_server_that_was_emptied_gets_everything(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    first = await sync(database, settings)
    clickhouse.run(f"DROP DATABASE {name}")
    clickhouse.run(f"CREATE DATABASE {name}")
    assert (await answer(settings, "crawl-cost")).complete_until is None
    assert (await sync(database, settings)).loaded == first.loaded
    assert counts(clickhouse, name)["price_history"] == rows


async def test_a_rebuilt_lake_loads_nothing_twice(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    await sync(database, settings)
    folder = lake_folder(settings)
    folder.rename(folder.with_name("old-lake"))
    assert (await sync(database, settings)).loaded == rows + 10 + 1
    assert counts(clickhouse, name)["price_history"] == rows
    assert counts(clickhouse, name)["pages"] == 10


async def test_tables_of_another_database_are_left_alone(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    await sync(database, settings)
    state = '{"database": "another/1", "complete_until": "2026-01-01T00:00:00+00:00"}'
    clickhouse.run(f"ALTER TABLE forager_products MODIFY COMMENT '{state}'", name)
    with pytest.raises(NotAllowed, match="another database"):
        await sync(database, settings)
    assert counts(clickhouse, name)["price_history"] == rows


async def test_tables_of_an_earlier_version(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    """Newer columns are added, and tables with the earlier engine are loaded again."""
    at = "(id Int64, at DateTime64(6, 'UTC'))"
    for table, engine in (
        (f"forager_extractions {at}", "MergeTree PARTITION BY toYYYYMM(at) ORDER BY (at, id)"),
        (f"forager_price_history {at}", "ReplacingMergeTree(at) ORDER BY (at, id)"),
        ("forager_lake_files (path String)", "ReplacingMergeTree ORDER BY path"),
    ):
        clickhouse.run(f"CREATE TABLE {table} ENGINE = {engine}", name)
    await sync(database, settings)
    assert (await answer(settings, "parser-quality")).columns
    assert counts(clickhouse, name)["price_history"] == rows
    assert "forager_lake_files" not in clickhouse.run("SHOW TABLES", name)


async def test_an_outage_of_the_server(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, rows: int
) -> None:
    """It catches up after an outage; no message contains its password."""
    away = SecretStr(clickhouse.url("nowhere", password="never-shown"))
    wrong = settings.model_copy(update={"clickhouse_url": away})
    with pytest.raises(ForagerError, match="cannot be used") as refused:
        await sync(database, wrong)
    assert "never-shown" not in str(refused.value)
    assert len(ids_in(lake_folder(settings), "price_history")) == rows
    with pytest.raises(ForagerError, match="cannot be used"):
        await answer(wrong, "crawl-cost")
    assert (await sync(database, settings)).loaded == rows + 10 + 1


async def test_a_question_that_takes_too_long(settings: Settings) -> None:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        with pytest.raises(NotAllowed, match="too long"):
            await server.query("SELECT sleepEachRow(1) FROM numbers(3)", longest=0.5)


def test_the_commands(
    database_url: str,
    clickhouse: ClickHouseServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_CLICKHOUSE_URL", clickhouse.url(name))
    assert run(["analytics", "sync"]) == 0
    assert "0 rows loaded into ClickHouse" in capsys.readouterr().err
    assert run(["analytics", "run", "crawl-cost"]) == 0
    assert "the last `forager analytics sync`" in capsys.readouterr().err
    monkeypatch.setenv("FORAGER_CLICKHOUSE_URL", clickhouse.url(name, password="hush"))
    assert run(["analytics", "run", "crawl-cost"]) == 1
    shown = capsys.readouterr().err
    assert "FORAGER_CLICKHOUSE_URL" in shown
    assert "hush" not in shown
