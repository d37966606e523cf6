"""Pages of site crawls come to the lake once, whenever the sync is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from analytics.killing import kill_after
from analytics.lake_rows import rows_in
from analytics.site_rows import add_job, settle
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.settings import Settings
from support.sql import execute

PROCESS = Path(__file__).with_name("sync_process.py")


@pytest.fixture
def folder(settings: Settings) -> Path:
    return lake_folder(settings)


def pages_in(folder: Path) -> Counter[tuple[str, str]]:
    return Counter((row["job_id"], row["url"]) for row in rows_in(folder, "pages"))


async def test_the_pages_of_every_job(database: Database, settings: Settings, folder: Path) -> None:
    jobs = [await add_job(database) for _ in range(4)]
    for number, job in enumerate(jobs):
        await settle(database, job, 1, 5 * number)
    assert (await sync(database, settings)).rows["pages"] == 30
    assert set(pages_in(folder).values()) == {1}
    assert Counter(job for job, _ in pages_in(folder)) == {
        str(job): 5 * number for number, job in enumerate(jobs) if number
    }


async def test_only_what_was_settled_since_comes_next(
    database: Database, settings: Settings, folder: Path
) -> None:
    running, ended = await add_job(database), await add_job(database)
    await settle(database, running, 1, 20)
    await settle(database, ended, 1, 3)
    await sync(database, settings)
    assert (await sync(database, settings)).rows["pages"] == 0
    # their keys are between those that were read before
    await settle(database, running, 21, 40, ago="0 seconds")
    assert (await sync(database, settings)).rows["pages"] == 40
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


async def test_a_killed_sync_is_repeated(
    database: Database, database_url: str, settings: Settings, folder: Path
) -> None:
    for job in [await add_job(database) for _ in range(3)]:
        await settle(database, job, 1, 10)
    for steps in (2, 3):
        await kill_after(steps, PROCESS, database_url, settings.home)
    await sync(database, settings)
    assert len(pages_in(folder)) == 30
    assert set(pages_in(folder).values()) == {1}


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
