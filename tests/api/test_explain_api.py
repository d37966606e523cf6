"""A URL is explained alike over HTTP, on the command line and to a person."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from api.client import Api
from forager.cli.main import run
from forager.cli.output import plain
from forager.crawl.explain.explanation import explain
from forager.db.database import Database
from forager.extract.keys import url_key
from forager.extract.urls import NormalizedUrl
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings
from support.sql import execute

URL = "https://docs.example.org/old/a"
DETAIL = "line 2 of robots.txt: Disallow: /old/"


async def settled_crawl(database: Database, queue: Queue) -> UUID:
    """A crawl that has excluded the URL, which is tracked as well."""
    payload = {"urls": ["https://docs.example.org/"], "exclude": ["/old/*"]}
    job = (await queue.enqueue(NewJob(kind="crawl", payload=payload))).job
    await execute(
        database,
        """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, reason, detail, depth, via)
            VALUES (%s, %s, %s, 'excluded', 'robots', %s, 1, 'link')
            """,
        job.id,
        url_key(NormalizedUrl(URL)),
        URL,
        DETAIL,
    )
    return job.id


async def test_all_adapters_explain_a_url_alike(
    api: Api,
    database: Database,
    queue: Queue,
    settings: Settings,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job_id = await settled_crawl(database, queue)
    await api.post("/api/v1/tasks", {"items": [URL]})
    found = (await api.get(f"/api/v1/explain?url={URL}")).json
    expected = plain(await explain(database, queue, URL))
    why, shown = expected["task"].pop("why"), found["task"].pop("why")
    # reading the page again is left to the command line, which has a sandbox for it
    assert expected.pop("content") is None
    assert found == expected
    assert why.partition("`")[0] == shown.partition("`")[0]
    assert (found["job_id"], found["verdict"], found["message"]) == (
        str(job_id),
        "excluded",
        DETAIL,
    )
    assert found["outlook"]["answer"] == "no"
    names = [check["name"] for check in found["outlook"]["checks"]]
    assert names == ["address", "scope", "robots", "host", "budget"]
    assert [past["detail"] for past in found["history"]] == [DETAIL]

    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(settings.home))
    assert await asyncio.to_thread(run, ["explain", URL]) == 0
    shown = capsys.readouterr().out
    for words in (DETAIL, found["outlook"]["message"], f"task {found['task']['task_id']}"):
        assert words in shown
    assert all(check["message"] in shown for check in found["outlook"]["checks"])
    assert shown.count(str(job_id)) == 2
    assert shown.startswith("tracked as task")


async def test_a_url_that_was_never_crawled_is_explained_without_a_scope(api: Api) -> None:
    found = (await api.get("/api/v1/explain?url=http://127.0.0.1/")).json
    assert (found["verdict"], found["job_id"], found["task"]) == ("never seen", None, None)
    assert found["history"] == []
    assert found["outlook"]["answer"] == "no"
    checks = {check["name"]: check["message"] for check in found["outlook"]["checks"]}
    assert "scope" not in checks
    assert checks["budget"].startswith("no delay between requests"), "on this machine"


async def test_a_tracked_url_is_explained_without_crawls_of_others(
    api: Api, database: Database, queue: Queue
) -> None:
    await settled_crawl(database, queue)
    await api.post("/api/v1/tasks", {"items": ["https://shop.example.org/lamp"]})
    found = (await api.get("/api/v1/explain?url=https://shop.example.org/lamp")).json
    assert (found["job_id"], found["message"]) == (None, "only its task visits it")
    assert "scope" not in [check["name"] for check in found["outlook"]["checks"]]
