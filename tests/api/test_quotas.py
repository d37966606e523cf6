"""What an owner may use holds however a job comes to run, and over all processes together."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from api.client import Answer, Api
from api.conftest import Keyed
from api.server_process import api_process
from forager.access.caller import Caller, QuotaExceeded, Scope
from forager.access.permits import Permits
from forager.access.quota import Quota
from forager.access.quotas import get_usage, set_quota
from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.queue import Queue
from support.keys import make_key
from support.sql import execute

# whatever the time is at noon of the test
YESTERDAY = "UPDATE crawl_jobs SET created_at = created_at - interval '2 days' WHERE id = %s"


async def failed_job(client: Api, database: Database, url: str, pages: int = 0) -> UUID:
    """A crawl that fetched some pages and failed."""
    job_id = UUID((await client.crawl(url))["job_id"])
    await execute(
        database,
        """
        INSERT INTO crawl_states (job_id, discovered, fetched) VALUES (%s, %s, %s) RETURNING 1
        """,
        job_id,
        pages,
        pages,
    )
    await execute(
        database,
        """
        UPDATE crawl_jobs SET status = 'failed', completed_at = now() WHERE id = %s RETURNING 1
        """,
        job_id,
    )
    return job_id


def refusal(answer: Answer) -> dict[str, Any]:
    """The complete problem of a rejected request."""
    assert (answer.status, answer.is_problem) == (429, True)
    problem: dict[str, Any] = answer.json
    assert str(problem["retry_after"]) == answer.headers["Retry-After"]
    assert str(problem["quota"]["limit"]) in problem["detail"]
    assert problem["fix"]
    used: dict[str, Any] = problem["quota"]
    return used


async def test_a_retry_needs_a_place(keyed: Keyed, database: Database, queue: Queue) -> None:
    client = await keyed()
    assert client.owner is not None
    job = await failed_job(client, database, "https://a.example/")
    await client.crawl("https://b.example/")
    await set_quota(database, client.owner, Quota(active_jobs=1))
    refused = await client.post(f"/api/v1/jobs/{job}/retry")
    assert refusal(refused) == {"what": "active_jobs", "used": 1, "limit": 1}
    assert (await queue.get(job)).status == "failed"
    bulk = (await client.post("/api/v1/jobs/bulk", {"action": "retry", "ids": [str(job)]})).json
    assert bulk["items"][0]["problem"]["status"] == 429
    await set_quota(database, client.owner, Quota(active_jobs=2))
    assert (await client.post(f"/api/v1/jobs/{job}/retry")).json["status"] == "pending"


async def test_of_racing_retries_as_many_as_fit_go_on(keyed: Keyed, database: Database) -> None:
    client = await keyed()
    assert client.owner is not None
    jobs = [await failed_job(client, database, f"https://s{n}.example/") for n in range(5)]
    await set_quota(database, client.owner, Quota(active_jobs=2))
    answers = await asyncio.gather(*(client.post(f"/api/v1/jobs/{job}/retry") for job in jobs))
    assert sorted(answer.status for answer in answers) == [200, 200, 429, 429, 429]


@pytest.mark.usefixtures("noon")
async def test_a_continued_job_has_the_pages_of_that_day(
    keyed: Keyed, database: Database, queue: Queue
) -> None:
    client = await keyed()
    assert client.owner is not None
    job = await failed_job(client, database, "https://a.example/", pages=80)
    await set_quota(database, client.owner, Quota(pages_per_day=100))
    assert (await get_usage(database, client.owner)).pages_today == 80
    # begun today: what it fetched counts
    assert (await client.post(f"/api/v1/jobs/{job}/retry")).status == 200
    assert (await queue.get(job)).payload["granted_pages"] == 100
    refused = await client.post("/api/v1/crawls", {"urls": ["https://b.example/"], "source": "b"})
    assert refusal(refused) == {"what": "pages_per_day", "used": 100, "limit": 100}
    # begun yesterday: only what it fetches from now on
    await client.post(f"/api/v1/jobs/{job}/pause")
    await execute(database, f"{YESTERDAY} RETURNING 1", job)
    await execute(database, "UPDATE crawl_jobs SET payload = payload - 'granted_on' RETURNING 1")
    assert (await get_usage(database, client.owner)).pages_today == 0
    assert (await client.post(f"/api/v1/jobs/{job}/resume")).status == 200
    assert (await queue.get(job)).payload["granted_pages"] == 180
    assert (await get_usage(database, client.owner)).pages_today == 100
    # its pages were deleted with it, and are not granted again
    await client.post(f"/api/v1/jobs/{job}/cancel")
    await execute(database, "DELETE FROM crawl_states RETURNING 1")
    assert (await get_usage(database, client.owner)).pages_today == 0


@pytest.mark.usefixtures("noon")
async def test_a_resume_needs_pages_of_the_day(
    keyed: Keyed, database: Database, queue: Queue
) -> None:
    client = await keyed()
    assert client.owner is not None
    paused = UUID((await client.crawl("https://a.example/"))["job_id"])
    await client.post(f"/api/v1/jobs/{paused}/pause")
    await failed_job(client, database, "https://b.example/", pages=50)
    await set_quota(database, client.owner, Quota(active_jobs=1, pages_per_day=50))
    refused = await client.post(f"/api/v1/jobs/{paused}/resume")
    assert refusal(refused) == {"what": "pages_per_day", "used": 50, "limit": 50}
    assert (await queue.get(paused)).status == "paused"
    # it has its place already, and needs no second one
    await set_quota(database, client.owner, Quota(active_jobs=1, pages_per_day=51))
    assert (await client.post(f"/api/v1/jobs/{paused}/resume")).json["status"] == "pending"
    assert (await queue.get(paused)).payload["granted_pages"] == 1


async def test_an_illegal_move_is_no_matter_of_quotas(keyed: Keyed, database: Database) -> None:
    client, admin = await keyed(), await keyed(Scope.ADMIN)
    assert client.owner is not None
    job = (await client.crawl("https://a.example/"))["job_id"]
    await set_quota(database, client.owner, Quota(active_jobs=0))
    assert (await client.post(f"/api/v1/jobs/{job}/retry")).status == 409
    # an admin may let go on what its owner may not
    await client.post(f"/api/v1/jobs/{job}/pause")
    assert (await client.post(f"/api/v1/jobs/{job}/resume")).status == 429
    assert (await admin.post(f"/api/v1/jobs/{job}/resume")).status == 200


async def test_why_a_refresh_is_put_off_is_shown(keyed: Keyed, database: Database) -> None:
    client = await keyed()
    assert client.owner is not None
    await execute(
        database,
        """
        INSERT INTO sources (id, base_url, user_id, kind, payload, refresh_every, next_refresh_at)
        VALUES ('docs', 'https://a.example/', %s, 'crawl', '{"urls": ["https://a.example/"]}',
                3600, now()) RETURNING 1
        """,
        client.owner,
    )
    assert (await client.get("/api/v1/sources/docs")).json["refresh_put_off"] is None
    await set_quota(database, client.owner, Quota(active_jobs=0))
    shown = (await client.get("/api/v1/sources/docs")).json
    assert shown["refresh_put_off"] == "0 of 0 active jobs are in use"
    asked = await client.post("/api/v1/sources/docs/refresh")
    assert refusal(asked) == {"what": "active_jobs", "used": 0, "limit": 0}


# --- requests ----------------------------------------------------------------------------------


async def count(permits: Permits, caller: Caller, tries: int) -> int:
    """The number of concurrent requests that succeed."""

    async def one() -> bool:
        try:
            await permits.take(caller)
        except QuotaExceeded:
            return False
        return True

    return sum(await asyncio.gather(*(one() for _ in range(tries))))


async def test_processes_share_the_requests_of_a_minute(database: Database) -> None:
    caller = Caller(new_id(), Scope.READ, "key", Quota(requests_per_minute=600))
    processes = [Permits(database, None) for _ in range(3)]
    began = time.monotonic()
    passed = sum([await count(permits, caller, 400) for permits in processes])
    # the minute's, and what was given back meanwhile: ten a second
    assert 600 <= passed <= 601 + 10 * (time.monotonic() - began)
    other = Caller(new_id(), Scope.READ, "key", Quota(requests_per_minute=7))
    began = time.monotonic()
    passed = sum([await count(permits, other, 5) for permits in processes])
    assert 7 <= passed <= 8 + 7 * (time.monotonic() - began) / 60
    assert await count(processes[0], Caller(new_id(), Scope.READ), 50) == 50


async def test_two_servers_answer_as_many_requests_as_one(
    address: str, database: Database, database_url: str, tmp_path: Path
) -> None:
    made = await make_key(database, "mine", scope=Scope.READ)
    await set_quota(database, made.key.user_id, Quota(requests_per_minute=1))
    with api_process(tmp_path, FORAGER_DATABASE_URL=database_url) as other:
        async with Api(address, key=made.text) as one, Api(other, key=made.text) as two:
            answers = [await client.get("/api/v1/me") for client in (one, two, one)]
    assert [answer.status for answer in answers] == [200, 429, 429]
    for answer in answers[1:]:
        assert refusal(answer) == {"what": "requests_per_minute", "used": 1, "limit": 1}
