"""What all endpoints have in common: problems, ids, ETags, pages, limits, answers given again."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.client import Api
from api.conftest import Keyed
from api.server_process import api_process
from forager.access.answers import delete_expired, reserve
from forager.access.caller import NO_OWNER
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, ForagerError
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.services import supervisor
from forager.services.service import Service, Step
from support.sql import execute
from support.waiting import eventually

NO_JOB = "0199a5c2-8a00-7000-8000-000000000000"
CRAWL = "/api/v1/crawls"
ORDER = {"urls": ["https://docs.example.org/"]}


# --- problems -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/nothing", None, 404),
        ("GET", "/nothing", None, 404),
        ("PUT", "/api/v1/jobs", None, 405),
        ("GET", f"/api/v1/jobs/{NO_JOB}", None, 404),
        ("GET", "/api/v1/jobs/not-an-id", None, 422),
        ("GET", "/api/v1/sources/nobody", None, 404),
        ("GET", "/api/v1/jobs?limit=0", None, 422),
        ("GET", "/api/v1/jobs?limit=1001", None, 422),
        ("GET", "/api/v1/jobs?cursor=abc", None, 422),
        ("GET", "/api/v1/jobs?source=%00", None, 422),
        ("GET", "/api/v1/sources/a%00b", None, 422),
        ("GET", "/api/v1/sources/a%2Fb", None, 404),
        ("GET", "/api/v1/search?q=x&cursor=%F0%9F%A6%93", None, 422),
        ("POST", CRAWL, {"urls": []}, 422),
        ("POST", CRAWL, {"urls": ["https://a.example/\0"]}, 422),
        ("POST", CRAWL, {**ORDER, "sealed": "abc"}, 422),
        ("POST", CRAWL, {**ORDER, "source": "../../etc/passwd"}, 422),
        ("POST", CRAWL, {**ORDER, "include": ["re:("]}, 422),
        ("POST", CRAWL, {**ORDER, "max_pages": 10**30}, 422),
        ("POST", CRAWL, {**ORDER, "headers": {"A": "b\r\nC: d"}}, 422),
        ("POST", CRAWL, [1, 2], 422),
        ("POST", "/api/v1/sources/nobody/publish", {"generation": 0}, 422),
        ("PUT", "/api/v1/sources/nobody/schedule", {"every": "1d", "cron": "* * * * *"}, 422),
    ],
)
async def test_every_error_is_a_problem(
    api: Api, method: str, path: str, body: Any, status: int
) -> None:
    answer = await api.send(method, path, body)
    assert answer.status == status, answer.body
    assert answer.is_problem
    if status == 405:
        assert answer.headers["Allow"]


async def test_half_a_character_is_an_error_of_its_field(api: Api) -> None:
    found = []
    for method, path, body in [
        ("POST", CRAWL, {**ORDER, "source": "a\ud800"}),
        ("POST", "/api/v1/keys", {"name": "\udfff", "scope": "read"}),
        ("POST", f"/api/v1/jobs/{NO_JOB}/cancel", {"reason": "\ud83d"}),
    ]:
        answer = await api.send(method, path, body)
        assert (answer.status, answer.is_problem) == (422, True), answer.body
        found += [
            (each["field"], "lone surrogate" in each["message"]) for each in answer.json["errors"]
        ]
    assert found == [("body.source", True), ("body.name", True), ("body.reason", True)]
    whole = await api.post(f"/api/v1/jobs/{NO_JOB}/cancel", {"reason": "\N{ZEBRA FACE}"})
    assert whole.status == 404


async def test_a_problem_names_the_field_and_the_fix(api: Api) -> None:
    wrong = (await api.post(CRAWL, {"urls": ["ftp://a.example/"], "max_depth": 1})).json
    assert wrong["errors"][0]["field"] == "body.urls"
    assert "neither http nor https" in wrong["errors"][0]["message"]
    misspelt = (await api.post(CRAWL, {**ORDER, "max_page": 5})).json
    assert [error["field"] for error in misspelt["errors"]] == ["body.max_page"]
    job = (await api.crawl())["job_id"]
    illegal = (await api.post(f"/api/v1/jobs/{job}/retry")).json
    assert (illegal["status"], illegal["fix"]) == (409, "Possible now: cancel, pause.")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'"text"', b"null", b"[" * 100_000])
async def test_malformed_bodies(api: Api, body: bytes) -> None:
    answer = await api.post(CRAWL, data=body, headers={"Content-Type": "application/json"})
    assert answer.status in (400, 422), answer.body
    assert answer.is_problem


async def test_a_body_that_is_too_large_is_not_read(api: Api) -> None:
    urls = "\n".join(f"https://a.example/{n:024}" for n in range(300_000))
    said = await api.post(CRAWL, data=BytesIO(urls.encode()))
    assert (said.status, said.is_problem) == (413, True)

    async def pieces() -> Any:
        for _ in range(200):
            yield b" " * 100_000

    unsaid = await api.post(CRAWL, data=pieces(), headers={"Content-Type": "application/json"})
    assert (unsaid.status, unsaid.is_problem) == (413, True)


async def test_a_list_of_a_million_urls_is_refused_before_it_is_read(api: Api) -> None:
    async def lines(begin: bytes, end: bytes) -> Any:
        yield begin
        for n in range(0, 1_000_000, 10_000):
            part = b",".join(b'"https://a.example/%09d"' % m for m in range(n, n + 10_000))
            yield part + (b"," if n < 990_000 else b"")
        yield end

    for path, name in ((CRAWL, b"urls"), ("/api/v1/tasks", b"items")):
        body = lines(b'{"' + name + b'": [', b"]}")
        answer = await api.post(path, data=body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.is_problem) == (413, True)
        assert "10,000,000 bytes" in answer.json["detail"]
        assert answer.json["fix"]
    assert (await api.get("/api/v1/jobs")).json["items"] == []


async def test_too_many_urls_are_refused_by_name(api: Api) -> None:
    answer = await api.post(CRAWL, {"urls": [f"https://a.example/{n}" for n in range(10_001)]})
    assert answer.status == 422
    assert answer.json["errors"][0]["field"] == "body.urls"
    assert "10000" in answer.json["errors"][0]["message"]


async def test_each_request_has_a_new_id_or_the_given_one(api: Api) -> None:
    first, second = await api.get("/healthz"), await api.get("/healthz")
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    given = await api.get("/api/v1/nothing", headers={"X-Request-Id": "my-id.1"})
    assert given.headers["X-Request-Id"] == given.json["request_id"] == "my-id.1"
    forged = await api.get("/healthz", headers={"X-Request-Id": "a b\tc"})
    assert forged.headers["X-Request-Id"] != "a b\tc"


async def test_the_id_of_a_request_is_in_the_log(database_url: str, tmp_path: Path) -> None:
    environment = {"FORAGER_DATABASE_URL": database_url, "FORAGER_LOG_LEVEL": "info"}
    with api_process(tmp_path, **environment) as address:
        async with Api(address) as api:
            answer = await api.get("/api/v1/nothing", headers={"X-Request-Id": "seen-in-the-log"})
    assert answer.headers["X-Request-Id"] == "seen-in-the-log"
    lines = [json.loads(line) for line in (tmp_path / "api.log").read_text().splitlines()]
    [line] = [line for line in lines if line.get("request_id") == "seen-in-the-log"]
    assert (line["path"], line["status"]) == ("/api/v1/nothing", 404)


EXPORTS = ["/api/v1/jobs/{}/export", "/api/v1/products/export"]


@pytest.mark.parametrize("path", EXPORTS)
async def test_names_of_files_are_our_own(api: Api, queue: Queue, path: str) -> None:
    [job] = await queue.enqueue_many([NewJob(kind="selftest", source_id="a/../../etc")])
    target = path.format(job.id)
    for name in ("name", "filename"):
        assert (await api.get(target, params={name: "../../etc/passwd"})).status == 422
    sent = await api.get(target)
    assert sent.status == 200
    shown = sent.headers["Content-Disposition"].partition("filename=")[2].strip('"')
    assert re.fullmatch(r"(job-[0-9a-f-]{36}|products)\.jsonl", shown)
    for kind in ("../../etc/passwd", "jsonl/../../x", "%00", ""):
        assert (await api.get(target, params={"format": kind})).status == 422
    for way in ("../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "....//etc"):
        assert (await api.get(f"/api/v1/jobs/{way}/export")).status in (404, 422)


async def test_health_and_readiness(api: Api, database: Database) -> None:
    assert (await api.get("/healthz")).json["status"] == "alive"
    ready = await api.get("/readyz")
    assert (ready.status, ready.json["ready"]) == (200, True)
    await execute(database, "UPDATE alembic_version SET version_num = '0000' RETURNING 1")
    behind = await api.get("/readyz")
    assert (behind.status, behind.json["schema_version"]) == (503, "0000")


async def broken() -> None:
    raise ValueError("a bad row")


async def unavailable() -> None:
    raise ForagerError("the broker is unavailable")


async def hung() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("step", "status"), [(broken, 503), (unavailable, 200), (hung, 503)])
async def test_services_of_the_process_that_keep_failing_are_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch, step: Step, status: int
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(supervisor, "LONGEST_DELAY", 0.01)
    service = Service(name="scheduler", every=0.001, step=step, first_within=0.0, stuck_after=0.1)
    async with supervisor.running([service]) as running:
        await eventually(lambda: running.statuses[0].is_failing)
        ready = await api.get("/readyz")
    assert (ready.status, ready.json["failing_services"]) == (status, ["scheduler"])
    assert ready.json["ready"] is (status == 200)
    assert "a bad row" not in str(ready.json), "no key is needed to ask"
    recovered = await api.get("/readyz")
    assert (recovered.status, recovered.json["failing_services"]) == (200, [])


# --- ETags --------------------------------------------------------------------------------------


async def test_a_polling_client_gets_a_body_only_if_it_changed(api: Api, queue: Queue) -> None:
    job = (await api.crawl())["job_id"]
    for path in (
        f"/api/v1/crawls/{job}",
        f"/api/v1/jobs/{job}",
        "/api/v1/jobs",
        "/api/v1/jobs/work",
    ):
        first = await api.get(path)
        etag = first.headers["ETag"]
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            same = await api.get(path, headers={"If-None-Match": known})
            assert (same.status, same.body, same.headers["ETag"]) == (304, b"", etag)
        assert (await api.get(path, headers={"If-None-Match": '"other"'})).body == first.body
    etag = (await api.get(f"/api/v1/crawls/{job}")).headers["ETag"]
    await api.post(f"/api/v1/jobs/{job}/pause")
    changed = await api.get(f"/api/v1/crawls/{job}", headers={"If-None-Match": etag})
    assert (changed.status, changed.json["status"]) == (200, "paused")


# --- pages --------------------------------------------------------------------------------------


async def test_a_list_is_complete_and_without_repetition(api: Api, queue: Queue) -> None:
    jobs = await queue.enqueue_many([NewJob(kind="selftest") for _ in range(23)])
    found: list[str] = []
    cursor = None
    while True:
        path = "/api/v1/jobs?limit=5" + (f"&cursor={cursor}" if cursor else "")
        page = (await api.get(path)).json
        found += [job["id"] for job in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(found) == sorted(str(job.id) for job in jobs)
    assert len(found) == len(set(found))


async def test_the_last_page_of_events_says_so(api: Api) -> None:
    job = (await api.crawl())["job_id"]
    await api.post(f"/api/v1/jobs/{job}/pause", {"reason": "<script>alert(1)</script>"})
    first = (await api.get(f"/api/v1/jobs/{job}/events?limit=1")).json
    assert first["next_cursor"] is not None
    path = f"/api/v1/jobs/{job}/events?limit=1&cursor={first['next_cursor']}"
    last = (await api.get(path)).json
    assert last["next_cursor"] is None
    assert last["items"][0]["reason"] == "<script>alert(1)</script>"


# --- answers that are given again ---------------------------------------------------------------


def once(key: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key}}


async def test_the_same_request_is_done_once(api: Api, database: Database) -> None:
    order = {"host": "a.example", "delay": 2.0}
    first = await api.post("/api/v1/domains", order, **once("k1"))
    again = await api.post("/api/v1/domains", dict(reversed(order.items())), **once("k1"))
    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    for how in (once("k2"), {}):
        there = await api.post("/api/v1/domains", order, **how)
        assert (there.status, there.is_problem) == (409, True)
        assert there.json["fix"] == "`PATCH /api/v1/domains/a.example` changes it."


async def test_another_request_with_the_same_key_is_a_conflict(api: Api) -> None:
    await api.post(CRAWL, ORDER, **once("k"))
    for path, body in ((CRAWL, {"urls": ["https://other.example/"]}), ("/api/v1/keys", ORDER)):
        other = await api.post(path, body, **once("k"))
        assert other.status in (409, 422)
    other = await api.post(CRAWL, {"urls": ["https://other.example/"]}, **once("k"))
    assert (other.status, other.is_problem) == (409, True)
    assert len((await api.get("/api/v1/jobs")).json["items"]) == 1


async def test_racing_requests_are_one_request(api: Api, database: Database) -> None:
    answers = await asyncio.gather(
        *(
            api.post("/api/v1/keys", {"name": "one", "scope": "admin"}, **once("k"))
            for _ in range(8)
        ),
        return_exceptions=False,
    )
    # the first of them makes a key, and from then on those without one are refused
    done = [answer for answer in answers if answer.status == 201]
    assert len({answer.body for answer in done}) == 1
    assert {answer.status for answer in answers} <= {201, 401}
    assert len(await execute(database, "SELECT id FROM api_keys")) == 1


async def test_racing_crawls_are_one_crawl(keyed: Keyed, database: Database) -> None:
    client = await keyed()
    answers = await asyncio.gather(*(client.post(CRAWL, ORDER, **once("k")) for _ in range(12)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


async def test_what_failed_may_be_tried_again(api: Api) -> None:
    order = {"host": "a.example"}
    await api.post("/api/v1/domains", order)
    assert (await api.post("/api/v1/domains", order, **once("k"))).status == 409
    assert (await api.post("/api/v1/domains", {"host": "b.example"}, **once("k"))).status == 201


async def test_a_server_that_dies_in_the_middle_leaves_nothing(
    api: Api, database: Database
) -> None:
    """The same statements as a request, and then the line is cut instead of a commit."""
    with suppress(psycopg.OperationalError, DatabaseUnavailable):
        async with database.transaction() as connection:
            assert await reserve(connection, NO_OWNER, "k", b"hash") is None
            await connection.close()
    assert (await api.post("/api/v1/domains", {"host": "a.example"}, **once("k"))).status == 201


async def test_keys_of_different_owners_do_not_meet(keyed: Keyed) -> None:
    mine, other = await keyed(), await keyed()
    first = await mine.post(CRAWL, {"urls": ["https://a.example/"]}, **once("k"))
    second = await other.post(CRAWL, {"urls": ["https://b.example/"]}, **once("k"))
    assert (first.status, second.status) == (202, 202)


async def test_an_answer_is_forgotten_after_a_day(api: Api, database: Database) -> None:
    await api.post(CRAWL, ORDER, **once("old"))
    await api.post(CRAWL, ORDER, **once("new"))
    await execute(
        database,
        """
        UPDATE idempotency_keys SET created_at = now() - interval '25 hours'
         WHERE key = 'old' RETURNING 1
        """,
    )
    fresh = await api.post(CRAWL, {"urls": ["https://b.example/"]}, **once("old"))
    assert (fresh.status, fresh.json["created"]) == (202, True)
    await execute(
        database, "UPDATE idempotency_keys SET created_at = now() - interval '25 hours' RETURNING 1"
    )
    assert await delete_expired(database) == 2


@pytest.mark.parametrize("key", ["", "x" * 256, "a b"])
async def test_keys_of_another_form_are_refused(api: Api, key: str) -> None:
    refused = await api.post(CRAWL, ORDER, **once(key))
    assert (refused.status, refused.is_problem) == (422, True)
