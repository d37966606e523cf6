"""Who may do what: keys, scopes, owners, quotas, and the door itself."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest

from api.client import Api
from api.conftest import Keyed
from forager.access.caller import Scope
from forager.access.keys import revoke_key
from forager.access.quota import Quota
from forager.access.quotas import set_quota
from forager.api.server import serve
from forager.db.database import Database
from forager.errors import NotAllowed
from forager.jobs.queue import Queue
from forager.settings import Settings
from search_corpus import Corpus
from support.keys import make_key
from support.sql import execute

PROTECTED = [
    "/api/v1/jobs",
    "/api/v1/sources",
    "/api/v1/search?q=x",
    "/api/v1/keys",
    "/api/v1/nothing",
]


async def test_without_keys_this_machine_is_an_admin_until_the_first_key(
    api: Api, database: Database
) -> None:
    me = (await api.get("/api/v1/me")).json
    assert me == me | {"scope": "admin", "key_id": None, "user_id": None}
    assert (await api.get("/api/v1/jobs", headers={"X-Forwarded-For": "192.0.2.1"})).status == 401
    await make_key(database, "first")
    refused = await api.get("/api/v1/me")
    assert refused.status == 401
    assert refused.is_problem
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "header",
    [
        {"Forwarded": "for=192.0.2.1"},
        {"Via": "1.1 proxy.example"},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Host": "crawl.example.org"},
        {"X-Real-IP": "192.0.2.1"},
        {"CF-Connecting-IP": "192.0.2.1"},
        {"CF-Ray": "8a1"},
    ],
    ids=lambda header: "".join(header),
)
async def test_without_keys_a_caller_behind_a_proxy_is_not_this_machine(
    api: Api, header: dict[str, str]
) -> None:
    assert (await api.get("/api/v1/me")).status == 200
    assert (await api.get("/api/v1/me", headers=header)).status == 401


class TestAnAllowedName:
    @pytest.fixture
    def api_settings(self, settings: Settings) -> Settings:
        names = {"api_port": 0, "api_allowed_hosts": ("crawl.example.org",)}
        return settings.model_copy(update=names)

    async def test_without_keys_a_name_of_the_outside_is_not_this_machine(self, api: Api) -> None:
        for name, status in (("localhost", 200), ("[::1]:80", 200), ("crawl.example.org", 401)):
            assert (await api.get("/api/v1/me", headers={"Host": name})).status == status


async def test_without_keys_http_1_0_is_not_this_machine(address: str) -> None:
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"GET /api/v1/me HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert b" 401 " in await reader.readline()
    writer.close()


async def test_a_revoked_only_key_does_not_open_the_door_again(
    api: Api, database: Database
) -> None:
    made = await make_key(database, "only")
    await revoke_key(database, made.key.id)
    assert (await api.get("/api/v1/me")).status == 401


@pytest.mark.parametrize("path", PROTECTED)
async def test_wrong_expired_and_revoked_keys(
    api: Api, database: Database, path: str, address: str
) -> None:
    good = await make_key(database, "good", scope=Scope.ADMIN)
    other = await make_key(database, "other", scope=Scope.ADMIN)
    revoked = await make_key(database, "revoked", scope=Scope.ADMIN)
    await revoke_key(database, revoked.key.id)
    expired = await make_key(database, "expired", scope=Scope.ADMIN, expires_in=3600)
    await execute(
        database, "UPDATE api_keys SET expires_at = now() WHERE id = %s RETURNING 1", expired.key.id
    )
    swapped = f"fgr_{good.key.id}_{other.text.rpartition('_')[2]}"
    wrong = ["", "x", "fgr_", swapped, good.text[:-1], good.text + "0", revoked.text, expired.text]
    for text in [*wrong, "'; DROP TABLE api_keys; --", "fgr_%00_%00"]:
        answer = await api.get(path, headers={"Authorization": f"Bearer {text}"})
        assert answer.status == 401, text
        assert answer.is_problem
        assert good.text not in answer.body.decode()
    for header in ({"Authorization": f"Bearer {good.text}"}, {"X-API-Key": good.text}):
        assert (await api.get(path, headers=header)).status in (200, 404)


async def test_a_bad_body_without_a_key_is_not_even_read(api: Api, database: Database) -> None:
    await make_key(database, "first")
    answer = await api.post("/api/v1/keys", data=b"{", headers={"Content-Type": "application/json"})
    assert answer.status == 401


OPERATE: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/crawls", {"urls": ["https://a.example/"]}),
    ("POST", f"/api/v1/jobs/{uuid4()}/pause", None),
    ("POST", "/api/v1/jobs/bulk", {"action": "pause", "ids": [str(uuid4())]}),
    ("DELETE", "/api/v1/sources/a", None),
    ("PATCH", "/api/v1/sources/a", {}),
    ("GET", "/api/v1/domains", None),
    ("GET", "/api/v1/proxies", None),
    ("GET", "/api/v1/workers", None),
]
ADMIN: list[tuple[str, str, Any]] = [
    ("GET", "/api/v1/keys", None),
    ("POST", "/api/v1/keys", {"name": "more"}),
    ("GET", "/api/v1/keys/0123456789ab", None),
    ("DELETE", "/api/v1/keys/0123456789ab", None),
    ("PUT", f"/api/v1/owners/{uuid4()}/quota", {}),
    ("GET", f"/api/v1/owners/{uuid4()}", None),
    ("POST", "/api/v1/jobs/prune", {}),
    ("POST", "/api/v1/domains", {"host": "a.example"}),
    ("PATCH", "/api/v1/domains/a.example", {"delay": 1}),
    ("PATCH", "/api/v1/domains", {"hosts": ["a.example"], "delay": 1}),
    ("POST", "/api/v1/domains/a.example/unblock", None),
    ("POST", "/api/v1/proxies", {"url": "http://p.example:1"}),
    ("DELETE", "/api/v1/proxies/1", None),
    ("POST", "/api/v1/proxies/1/enable", None),
    ("POST", "/api/v1/proxies/1/disable", None),
    ("POST", "/api/v1/proxies/1/test", None),
]


async def test_each_scope_may_do_its_own_and_no_more(keyed: Keyed) -> None:
    reader, operator, admin = [await keyed(scope) for scope in Scope]
    for method, path, body in OPERATE:
        assert (await reader.send(method, path, body)).status == 403, path
        assert (await operator.send(method, path, body)).status != 403, path
    for method, path, body in ADMIN:
        for client in (reader, operator):
            refused = await client.send(method, path, body)
            assert refused.status == 403, path
            assert refused.is_problem
            assert "scope" in refused.json["detail"]
        assert (await admin.send(method, path, body)).status != 403, path


async def test_objects_of_other_owners_are_not_found(
    keyed: Keyed, database: Database, queue: Queue
) -> None:
    mine, other, admin = await keyed(), await keyed(), await keyed(Scope.ADMIN)
    assert mine.owner is not None
    corpus = Corpus(database)
    await corpus.publish("mine.example", {"/a": [("Zebra", "stripes")]}, owner=mine.owner)
    await corpus.publish("nobodys.example", {"/a": [("Zebra", "stripes")]})
    job = (await mine.crawl("https://mine.example/", source="mine.example"))["job_id"]
    paths = [
        f"/api/v1/jobs/{job}",
        f"/api/v1/jobs/{job}/events",
        f"/api/v1/jobs/{job}/pages",
        f"/api/v1/crawls/{job}",
        f"/api/v1/explain?url=https://mine.example/&job_id={job}",
        "/api/v1/sources/mine.example",
        "/api/v1/sources/mine.example/generations",
        "/api/v1/documents?source=mine.example",
        "/api/v1/documents/read?url=https://mine.example/a",
        "/api/v1/sections?source=mine.example&path=/a",
        "/api/v1/search?q=zebra&source=mine.example",
    ]
    for path in [*paths, f"/api/v1/crawls/{job}/events"]:
        refused = await other.get(path)
        assert refused.status == 404, path
        assert refused.is_problem
    for path in paths:
        assert (await mine.get(path)).status == 200, path
        assert (await admin.get(path)).status == 200, path
    moves = [f"/api/v1/jobs/{job}/{move}" for move in ("pause", "resume", "cancel", "retry")]
    for path in [*moves, "/api/v1/sources/mine.example/refresh"]:
        assert (await other.post(path)).status == 404, path
    assert (await other.send("DELETE", "/api/v1/sources/mine.example")).status == 404
    assert (await other.post("/api/v1/sources/mine.example/rollback", {})).status == 404
    bulk = (await other.post("/api/v1/jobs/bulk", {"action": "cancel", "ids": [job]})).json
    assert (bulk["moved"], bulk["items"][0]["problem"]["status"]) == (0, 404)
    assert (await queue.get(UUID(job))).shown_status == "pending"
    for path in ("/api/v1/jobs", "/api/v1/sources"):
        assert (await other.get(path)).json["items"] == []
        assert len((await mine.get(path)).json["items"]) == 1
    assert (await other.get("/api/v1/search?q=zebra")).json["items"] == []
    assert len((await mine.get("/api/v1/search?q=zebra")).json["items"]) == 1
    assert len((await admin.get("/api/v1/search?q=zebra")).json["items"]) == 2
    assert (await other.get("/api/v1/jobs/work")).json["counts"]["pending"] == 0
    assert (await mine.get("/api/v1/jobs/work")).json["pending_work"][0]["jobs"] == 1
    assert (await other.get("/api/v1/explain?url=https://mine.example/")).json["job_id"] is None


async def test_a_source_of_another_owner_cannot_be_taken_over(
    keyed: Keyed, database: Database
) -> None:
    mine, other = await keyed(), await keyed()
    await Corpus(database).publish("local.example", {"/a": [("A", "b")]})
    order = {"urls": ["https://mine.example/"], "source": "shared"}
    first = await mine.post("/api/v1/crawls", order)
    second = await other.post("/api/v1/crawls", order)
    assert (first.status, second.status) == (202, 409)
    assert first.json["job_id"] not in second.body.decode()
    local = await other.post("/api/v1/crawls", {"urls": ["https://local.example/"]})
    assert local.status == 409
    assert "source" in local.json["fix"]
    again = await mine.post("/api/v1/crawls", order)
    assert again.json == first.json | {"created": False}


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://127.0.0.1:8700/api/v1/keys",
        "http://[::1]/",
        "http://0x7f.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.google.internal/",
        "http://10.1.2.3/",
    ],
)
async def test_private_addresses_are_for_admins(keyed: Keyed, url: str) -> None:
    operator, admin = await keyed(), await keyed(Scope.ADMIN)
    path, order = "/api/v1/crawls", {"urls": [url], "source": "near"}
    assert (await operator.post(path, order)).status == 403
    refused = await operator.post(path, {**order, "allow_private": True})
    assert (refused.status, "allow_private needs the scope admin" in str(refused.json)) == (
        403,
        True,
    )
    assert (await admin.post(path, order)).status == 403
    allowed = (await admin.post(path, {**order, "allow_private": True})).status
    assert allowed == (403 if "169.254" in url or "metadata" in url else 202)
    proxied = {"urls": ["https://docs.example.org/"], "proxy": url}
    assert (await operator.post(path, proxied)).status == 403


async def test_active_jobs_are_counted_exactly_however_many_ask_at_once(
    keyed: Keyed, database: Database
) -> None:
    client = await keyed()
    assert client.owner is not None
    await set_quota(database, client.owner, Quota(active_jobs=3))
    answers = await asyncio.gather(
        *(client.post("/api/v1/crawls", {"urls": [f"https://s{n}.example/"]}) for n in range(12))
    )
    assert sorted(answer.status for answer in answers) == [202] * 3 + [429] * 9
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.is_problem
    assert int(refused.headers["Retry-After"]) >= 1
    # what is under way already needs no more room
    accepted = next(answer for answer in answers if answer.status == 202).json
    again = await client.crawl(f"https://{accepted['source']}/")
    assert again == accepted | {"created": False}


@pytest.mark.usefixtures("noon")
async def test_pages_are_granted_within_the_quota_of_the_job_and_of_the_day(
    keyed: Keyed, database: Database, queue: Queue
) -> None:
    client = await keyed()
    assert client.owner is not None
    await set_quota(database, client.owner, Quota(pages_per_job=100, pages_per_day=150))
    granted = []
    for n, wanted in enumerate([None, 30, 1000]):
        job = await client.crawl(f"https://s{n}.example/", max_pages=wanted)
        granted.append((await queue.get(UUID(job["job_id"]))).payload["granted_pages"])
    assert granted == [100, 50, 20]
    order = {"urls": ["https://more.example/"]}
    refused = await client.post("/api/v1/crawls", order)
    assert refused.status == 429
    assert 0 < int(refused.headers["Retry-After"]) <= 86400
    # a job that ends gives back what it did not fetch
    await queue.cancel(UUID(job["job_id"]))
    assert (await client.post("/api/v1/crawls", order)).status == 202


async def test_requests_per_minute(keyed: Keyed, database: Database) -> None:
    client, other = await keyed(Scope.READ), await keyed(Scope.READ)
    assert client.owner is not None
    await set_quota(database, client.owner, Quota(requests_per_minute=3))
    statuses = [(await client.get("/api/v1/me")).status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert int((await client.get("/api/v1/me")).headers["Retry-After"]) in range(1, 21)
    assert (await other.get("/api/v1/me")).status == 200


async def test_keys_are_made_shown_and_revoked_over_http(
    api: Api, address: str, database: Database
) -> None:
    made = await api.post("/api/v1/keys", {"name": "mine", "scope": "admin", "expires_in_days": 1})
    assert made.status == 201
    text = made.json["key"]
    stored = await execute(database, "SELECT secret_hash, id FROM api_keys")
    assert text.partition("_")[2].partition("_")[2].encode() not in stored[0][0]
    async with Api(address, key=text) as admin:
        listed = (await admin.get("/api/v1/keys")).json["items"]
        assert [key["id"] for key in listed] == [made.json["id"]]
        assert text not in str(listed)
        more = (await admin.post("/api/v1/keys", {"name": "more"})).json
        assert (more["scope"], more["state"]) == ("operate", "active")
        quota = f"/api/v1/owners/{more['user_id']}/quota"
        set_ = await admin.send("PUT", quota, {"active_jobs": 2})
        assert set_.json["quota"] == {
            "active_jobs": 2,
            "pages_per_job": None,
            "pages_per_day": None,
            "requests_per_minute": None,
        }
        assert (await admin.get(f"/api/v1/owners/{more['user_id']}")).json == set_.json
        revoked = await admin.send("DELETE", f"/api/v1/keys/{more['id']}")
        assert revoked.json["state"] == "revoked"
        assert (await admin.get("/api/v1/keys/abc")).status == 404
        async with Api(address, key=more["key"]) as gone:
            refused = await gone.get("/api/v1/me")
            assert (refused.status, "revoked" in refused.json["detail"]) == (401, True)


async def test_the_secret_of_a_key_is_not_in_the_stored_answer(
    api: Api, address: str, database: Database
) -> None:
    how = {"headers": {"Idempotency-Key": "make"}}
    made = await api.post("/api/v1/keys", {"name": "mine", "scope": "admin"}, **how)
    secret = made.json["key"].rpartition("_")[2].encode()
    [(answer,)] = await execute(database, "SELECT answer FROM idempotency_keys")
    assert secret not in answer


async def test_a_server_without_keys_listens_on_loopback_only(
    api_settings: Settings, database: Database
) -> None:
    open_door = api_settings.model_copy(update={"api_host": "0.0.0.0"})
    with pytest.raises(NotAllowed, match="loopback only"):
        await serve(open_door, database, asyncio.Event())
    await make_key(database, "first")
    stopping = asyncio.Event()
    stopping.set()
    await serve(open_door, database, stopping)


async def test_other_names_and_other_sites_are_refused(api: Api) -> None:
    rebound = await api.get("/api/v1/jobs", headers={"Host": "evil.example"})
    assert (rebound.status, rebound.is_problem) == (421, True)
    assert (await api.get("/healthz", headers={"Host": "evil.example"})).status == 200
    order = {"urls": ["https://docs.example.org/"]}
    for header in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        refused = await api.post("/api/v1/crawls", order, headers=header)
        assert (refused.status, refused.is_problem) == (403, True)
    assert (await api.get("/api/v1/jobs")).json["items"] == []
    # a form of another site cannot claim to be JSON without asking first
    form = await api.post("/api/v1/crawls", data=b'{"urls": ["https://a.example/"]}')
    assert form.status == 415
    own = await api.post("/api/v1/crawls", order, headers={"Origin": api.address})
    assert own.status == 202
