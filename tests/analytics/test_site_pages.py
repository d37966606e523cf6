"""Pages of site crawls come to the lake once, whenever the sync is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import orjson
import pytest

from analytics.killing import kill_after
from analytics.lake_rows import rows_in
from analytics.site_rows import add_job, settle
from forager.analytics import store
from forager.analytics import sync as merging
from forager.analytics.lake import NAME, LakeFile, Manifest, lake_folder, read_manifest
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.row_files import load_pyarrow
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


def pages_in(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((row["job_id"], row["url"]) for row in rows_in(folder, "pages"))


async def test_every_job_in_steps_of_any_size(
    database: Database, settings: Settings, folder: Path
) -> None:
    jobs = [await add_job(database) for _ in range(4)]
    for number, job in enumerate(jobs):
        await settle(database, job, 1, 5 * number)
    assert (await sync(database, settings, chunk=7)).rows["pages"] == 30
    assert set(pages_in(folder).values()) == {1}
    assert Counter(job for job, _ in pages_in(folder)) == {
        str(job): 5 * number for number, job in enumerate(jobs) if number
    }


@pytest.mark.usefixtures("no_lag")
async def test_only_what_was_settled_since_comes_next(
    database: Database, settings: Settings, folder: Path
) -> None:
    running, ended = await add_job(database), await add_job(database)
    await settle(database, running, 1, 20)
    await settle(database, ended, 1, 3)
    await sync(database, settings, chunk=9)
    assert (await sync(database, settings)).rows["pages"] == 0
    # their keys are between those that were read before
    await settle(database, running, 21, 40, ago="0 seconds")
    assert (await sync(database, settings, chunk=9)).rows["pages"] == 40
    assert len(pages_in(folder)) == 63
    assert set(pages_in(folder).values()) == {1}


async def test_what_a_page_tells(database: Database, settings: Settings, folder: Path) -> None:
    await execute(
        database,
        "INSERT INTO domains (domain_name, base_url)"
        " VALUES ('docs.example', 'https://docs.example'), ('intranet', 'https://intranet')",
    )
    job = await add_job(database, proxy="http://user:secret@proxy.example:8080")
    await settle(database, job, 1, 1, host="www.docs.example")
    await settle(database, job, 2, 1, host="elsewhere.example:8443")
    await settle(database, job, 3, 1, host="wiki.intranet")
    await sync(database, settings)
    one, two, three = sorted(rows_in(folder, "pages"), key=lambda row: row["url"][-1])
    assert (one["domain"], two["domain"]) == ("docs.example", "elsewhere.example:8443")
    # a name without a dot covers itself alone
    assert three["domain"] == "wiki.intranet"
    assert (one["attempt"], two["attempt"]) == (2, 1)
    assert (one["size"], one["duration_ms"], one["http_status"]) == (1000, 500, 200)
    assert one["proxy"] == "http://proxy.example:8080"
    assert one["id"] != two["id"]


async def test_what_nobody_asked_for_is_no_page(
    database: Database, settings: Settings, folder: Path
) -> None:
    job = await add_job(database)
    await settle(database, job, 1, 4)
    async with database.connection() as connection:
        await connection.execute(
            """
            UPDATE crawl_visited SET outcome = 'excluded', http_status = NULL
             WHERE url IN ('https://docs.example/1', 'https://docs.example/2')
            """
        )
        await connection.execute(
            "UPDATE crawl_visited SET outcome = 'excluded' WHERE url = 'https://docs.example/3'"
        )
    await sync(database, settings)
    found = {row["url"]: row["outcome"] for row in rows_in(folder, "pages")}
    assert found == {"https://docs.example/3": "excluded", "https://docs.example/4": "fetched"}


async def test_killed_anywhere_it_goes_on(
    database: Database, database_url: str, settings: Settings, folder: Path
) -> None:
    jobs = [await add_job(database) for _ in range(3)]
    for job in jobs:
        await settle(database, job, 1, 10)
    for steps in (1, 2, 1):
        await kill_after(steps, PROCESS, database_url, settings.home, "4")
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.site.until is not None
    await sync(database, settings)
    assert len(pages_in(folder)) == 30
    assert set(pages_in(folder).values()) == {1}


@pytest.mark.usefixtures("no_lag")
async def test_who_commits_late_is_not_forgotten(
    database: Database, settings: Settings, folder: Path
) -> None:
    job = await add_job(database)
    async with database.transaction() as late:
        await late.execute(
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, http_status, depth, via)
            VALUES (%s, '\\x01', 'https://docs.example/late', 'fetched', 200, 0, 'seed')
            """,
            (job,),
        )
        await late.execute("UPDATE crawl_states SET updated_at = now() WHERE job_id = %s", (job,))
        assert (await sync(database, settings)).rows["pages"] == 0
    assert (await sync(database, settings)).rows["pages"] == 1


async def test_a_lake_of_before_goes_on(
    database: Database, settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without the newer columns are merged with those that have them."""
    job = await add_job(database)
    await settle(database, job, 1, 3, ago="2 hours")
    await sync(database, settings)
    parquet = load_pyarrow("pyarrow.parquet")
    [old] = folder.glob("pages/*/*.parquet")
    parquet.write_table(parquet.ParquetFile(old).read().drop_columns(["job_id", "url"]), old)
    data = orjson.loads((folder / NAME).read_bytes())
    del data["lake"], data["site"]
    for file in data["files"]:
        del file["parts"]
    (folder / NAME).write_bytes(orjson.dumps(data))
    monkeypatch.setattr(merging, "MOST_FILES", 1)
    monkeypatch.setattr(merging, "LARGE_ROWS", 100)
    await sync(database, settings)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert manifest.lake
    assert sum(file.rows for file in manifest.of("pages")) == 6
    assert Counter(row["url"] is None for row in rows_in(folder, "pages")) == {True: 3, False: 3}


def test_merged_files_stay_of_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_FILES", 3)
    files = tuple(
        LakeFile("pages", "2026-11", f"pages/{number}", rows=400_000, size=1) for number in range(8)
    )
    runs = list(merging.crowded(Manifest("none", files=files)))
    assert [len(run) for run in runs] == [3, 3, 2]
