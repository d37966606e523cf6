"""Loading the lake into a ClickHouse server: every row once, whatever happens on the way."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from analytics.lake_rows import add_prices, aged_product
from analytics.site_rows import add_job, settle
from forager.analytics import sync as merging
from forager.analytics.answers import answer
from forager.analytics.clickhouse import ClickHouse, connected
from forager.analytics.lake import lake_folder, read_manifest
from forager.analytics.loading import create_tables
from forager.analytics.sync import sync
from forager.cli.main import run
from forager.db.database import Database
from forager.doctor.archive import check_clickhouse
from forager.doctor.check import Level
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings
from services.servers.clickhouse import ClickHouseServer

PROCESS = Path(__file__).parents[1] / "analytics" / "sync_process.py"


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
    """Write prices in several files, and pages of site crawls."""
    await add_prices(database, await aged_product(database, 1), 100)
    await settle(database, await add_job(database), 1, 10)
    return 100


def counts(clickhouse: ClickHouseServer, name: str) -> dict[str, int]:
    """Rows of each table, as those see them who ask."""
    return {
        table: int(clickhouse.run(f"SELECT count() FROM forager_{table} FINAL", name))
        for table in ("products", "price_history", "pages", "extractions")
    }


async def test_a_sync_loads_what_is_new(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str, rows: int
) -> None:
    done = await sync(database, settings, chunk=30)
    assert done.loaded == rows + 10 + 1
    assert counts(clickhouse, name) == {
        "products": 1, "price_history": rows, "pages": 10, "extractions": 0,
    }  # fmt: skip
    assert (await sync(database, settings)).loaded == 0
    found = await answer(settings, "price-changes")
    assert found.complete_until is not None
    assert found.complete_until >= done.complete_until


async def test_the_doctor_looks_at_the_server(
    database: Database, settings: Settings, rows: int
) -> None:
    found = await check_clickhouse(database, settings)
    assert (found.level, found.advice) == (Level.WARN, "Run forager analytics sync.")
    done = await sync(database, settings)
    assert rows
    found = await check_clickhouse(database, settings)
    assert found.level is Level.OK
    assert f"{done.complete_until:%Y-%m-%d %H:%M}" in found.finding
    away = SecretStr("clickhouse://someone:private@127.0.0.1:1/nowhere")
    found = await check_clickhouse(database, settings.model_copy(update={"clickhouse_url": away}))
    assert found.level is Level.FAIL
    assert "private" not in f"{found.finding} {found.advice}"


async def test_killed_between_the_rows_and_their_record(
    database: Database,
    settings: Settings,
    clickhouse: ClickHouseServer,
    name: str,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The file that was not recorded is loaded again, and its rows are there once."""
    insert = ClickHouse.insert

    async def insert_and_die(self: ClickHouse, *given: object) -> None:
        await insert(self, *given)  # type: ignore[arg-type]
        raise Killed

    monkeypatch.setattr(ClickHouse, "insert", insert_and_die)
    for _ in range(2):
        with pytest.raises(Killed):
            await sync(database, settings, chunk=30)
    assert clickhouse.run("SELECT count() FROM forager_lake_files", name).strip() == "0"
    monkeypatch.undo()
    assert (await answer(settings, "price-changes")).complete_until is None
    assert (await sync(database, settings)).loaded == rows + 10 + 1
    assert counts(clickhouse, name)["price_history"] == rows
    assert counts(clickhouse, name)["products"] == 1


async def test_a_killed_sync_is_continued(
    database: Database,
    database_url: str,
    settings: Settings,
    clickhouse: ClickHouseServer,
    name: str,
    rows: int,
) -> None:
    assert settings.clickhouse_url is not None
    # six to write the lake, and one file that is loaded; then a file each time
    for steps in (7, 1, 1):
        process = await asyncio.create_subprocess_exec(
            sys.executable, PROCESS, database_url, settings.home, "30",
            settings.clickhouse_url.get_secret_value(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(60):
            for _ in range(steps):
                assert await process.stdout.readline()
                process.stdin.write(b"\n")
            process.kill()
            await process.wait()
    await sync(database, settings)
    assert counts(clickhouse, name)["price_history"] == rows
    assert counts(clickhouse, name)["pages"] == 10


async def test_merged_files_are_not_sent_again(
    database: Database,
    settings: Settings,
    clickhouse: ClickHouseServer,
    name: str,
    rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await sync(database, settings, chunk=30)).loaded
    monkeypatch.setattr(merging, "MOST_FILES", 1)
    assert (await sync(database, settings)).loaded == 0
    manifest = read_manifest(lake_folder(settings))
    assert manifest is not None
    assert any(file.parts for file in manifest.files)
    assert counts(clickhouse, name)["price_history"] == rows
    assert (await sync(database, settings)).loaded == 0


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


@pytest.mark.usefixtures("rows")
async def test_tables_of_another_database_are_left_alone(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str
) -> None:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        await create_tables(server)
    clickhouse.run("INSERT INTO forager_lake VALUES ('another/1', 0)", name)
    with pytest.raises(NotAllowed, match="another database"):
        await sync(database, settings)
    assert set(counts(clickhouse, name).values()) == {0}


@pytest.mark.usefixtures("rows")
async def test_a_table_of_before_gets_the_newer_columns(
    database: Database, settings: Settings, clickhouse: ClickHouseServer, name: str
) -> None:
    clickhouse.run(
        """
        CREATE TABLE forager_extractions (id Int64, at DateTime64(6, 'UTC'))
        ENGINE = ReplacingMergeTree(at) PARTITION BY toYYYYMM(at) ORDER BY (at, id)
        """,
        name,
    )
    await sync(database, settings)
    assert (await answer(settings, "parser-quality")).columns


@pytest.mark.usefixtures("rows")
async def test_the_lake_grows_while_the_server_is_unavailable(
    database: Database, settings: Settings, clickhouse: ClickHouseServer
) -> None:
    """It catches up after an outage; no message contains its password."""
    away = SecretStr(clickhouse.url("nowhere", password="never-shown"))
    wrong = settings.model_copy(update={"clickhouse_url": away})
    with pytest.raises(ForagerError, match="cannot be used") as refused:
        await sync(database, wrong)
    assert "never-shown" not in str(refused.value)
    manifest = read_manifest(lake_folder(settings))
    assert manifest is not None
    assert manifest.complete_until is not None
    with pytest.raises(ForagerError, match="cannot be used"):
        await answer(wrong, "crawl-cost")
    assert (await sync(database, settings)).loaded == sum(file.rows for file in manifest.files)


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


@pytest.mark.usefixtures("rows")
async def test_a_server_that_is_killed_while_it_loads(
    database: Database, database_url: str, tmp_path: Path, settings: Settings
) -> None:
    """SIGKILL in the middle: what is there afterwards is there once."""
    server = ClickHouseServer(tmp_path / "clickhouse")
    server.start()
    try:
        server.run("CREATE DATABASE own")
        process = await asyncio.create_subprocess_exec(
            sys.executable, PROCESS, database_url, settings.home, "30", server.url("own"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(60):
            for _ in range(8):
                assert await process.stdout.readline()
                process.stdin.write(b"\n")
            await asyncio.to_thread(server.kill)
            await process.communicate(b"\n" * 100)
        assert process.returncode
        await asyncio.to_thread(server.start)
        own = SecretStr(server.url("own"))
        await sync(database, settings.model_copy(update={"clickhouse_url": own}))
        assert counts(server, "own") == {
            "products": 1, "price_history": 100, "pages": 10, "extractions": 0,
        }  # fmt: skip
    finally:
        server.kill()
