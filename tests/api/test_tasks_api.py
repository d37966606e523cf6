"""Tasks over HTTP: submitted in batches, looked at, held, changed and let go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from api.client import Api
from forager.access.caller import Scope
from forager.db.database import Database
from forager.settings import Settings
from forager.tasks.scheduler import Scheduler
from support.sql import execute, fetch_value
from tasks.tasks_at_hand import make_domain, make_task

Keyed = Callable[..., Awaitable[Api]]

LAMP = "https://shop.example/lamp"
NASTY = "'; DROP TABLE crawl_tasks; -- <script>alert(1)</script> %s \\ _"


async def track(api: Api, *items: Any, **order: Any) -> Any:
    answer = await api.post("/api/v1/tasks", {"items": list(items), **order})
    assert answer.status == 201, answer.body
    return answer.json


# --- submitting --------------------------------------------------------------------------------


async def test_good_items_are_tracked_and_bad_ones_named(api: Api, database: Database) -> None:
    done = await track(
        api,
        LAMP,
        {"url": "https://shop.example/desk", "priority": 2, "every": "6h", "popularity": 3.5},
        "ftp://shop.example/x",
        {"url": "https://shop.example/chair", "priority": 99},
        {"url": "https://shop.example/table", "every": "often"},
        {"priority": 3},
        7,
        None,
        ["https://shop.example/list"],
        "https://169.254.169.254/latest",
        {"url": "https://shop\0.example/", "note": 10**40},
        NASTY,
        "HTTPS://SHOP.example/lamp#again",
        "https://shop.example/\ud800\0",
        every="1d",
    )
    assert (done["added"], done["known"], done["bad"]) == (3, 1, 10)
    assert [bad["item"] for bad in done["refused"]] == list(range(2, 12))
    assert all(bad["reason"] for bad in done["refused"])
    assert [(each["item"], each["url"]) for each in done["tasks"]] == [
        (0, LAMP),
        (1, "https://shop.example/desk"),
        (12, "HTTPS://SHOP.example/lamp#again"),
        (13, "https://shop.example/\N{REPLACEMENT CHARACTER}"),
    ]
    assert done["tasks"][0]["id"] == done["tasks"][2]["id"]
    desk = (await api.get(f"/api/v1/tasks/{done['tasks'][1]['id']}")).json
    assert (desk["priority"], desk["every"], desk["popularity"]) == (2, "6h", 3.5)
    lamp = (await api.get("/api/v1/tasks/by-url", params={"url": LAMP})).json
    assert (lamp["every"], lamp["found_by"], lamp["status"]) == ("1d", "api", "pending")


async def test_a_batch_of_nothing_good_is_refused(api: Api, database: Database) -> None:
    answer = await api.post("/api/v1/tasks", {"items": ["nonsense", {"url": 7}]})
    assert (answer.status, answer.is_problem) == (422, True)
    assert [e["field"] for e in answer.json["errors"]] == ["body.items.0", "body.items.1"]
    orders: list[dict[str, Any]] = [
        {"items": []},
        {"items": [LAMP], "every": "often"},
        {"items": [LAMP] * 10_001},
        {"urls": [LAMP]},
        {"items": [LAMP], "priority": 10},
    ]
    for order in orders:
        refused = await api.post("/api/v1/tasks", order)
        assert (refused.status, refused.is_problem) == (422, True)
    assert await fetch_value(database, "SELECT count(*) FROM crawl_tasks") == 0


async def test_a_batch_is_tracked_once(api: Api) -> None:
    order = {"items": [f"https://shop.example/{n}" for n in range(6_000)]}
    key = {"Idempotency-Key": "batch-1"}
    first = await api.post("/api/v1/tasks", order, headers=key)
    assert (first.status, first.json["added"], len(first.json["tasks"])) == (201, 6_000, 6_000)
    again = await api.post("/api/v1/tasks", order, headers=key)
    assert (again.json, again.headers["Idempotency-Replayed"]) == (first.json, "true")
    other = await api.post("/api/v1/tasks", {"items": [LAMP]}, headers=key)
    assert (other.status, other.is_problem) == (409, True)


async def test_private_addresses_are_for_admins(keyed: Keyed) -> None:
    operator, admin = await keyed(Scope.OPERATE), await keyed(Scope.ADMIN)
    order = {"items": ["http://127.0.0.1:8000/x", "http://localhost/x"]}
    assert (await operator.post("/api/v1/tasks", order)).status == 422
    allowed = {**order, "allow_private": True}
    assert (await operator.post("/api/v1/tasks", allowed)).status == 403
    assert (await admin.post("/api/v1/tasks", allowed)).json["added"] == 2


async def test_scopes(keyed: Keyed) -> None:
    reader, operator = await keyed(Scope.READ), await keyed(Scope.OPERATE)
    task = (await track(operator, LAMP))["tasks"][0]["id"]
    assert (await reader.get(f"/api/v1/tasks/{task}")).status == 200
    for method, path, body in (
        ("POST", "/api/v1/tasks", {"items": [LAMP]}),
        ("POST", "/api/v1/tasks/pause", {"all": True}),
        ("PATCH", f"/api/v1/tasks/{task}", {"priority": 1}),
        ("POST", f"/api/v1/tasks/{task}/recrawl", None),
        ("DELETE", f"/api/v1/tasks/{task}", None),
    ):
        assert (await reader.send(method, path, body)).status == 403, path


# --- looking -----------------------------------------------------------------------------------


async def test_lists(api: Api, database: Database) -> None:
    shop = await make_domain(database, "shop.example")
    other = await make_domain(database, "other.example", task_hold="paused")
    ids = [await make_task(database, shop, n + 1) for n in range(5)]
    failed = await make_task(database, shop, 6, status="failed")
    later = await make_task(database, other, 7, scheduled_in=3600)
    # it used up its retries and is visited again by its interval
    missed = await make_task(database, shop, 8, scheduled_in=60, failing_since=datetime.now(UTC))
    for query, found in (
        ("", [missed, later, failed, *reversed(ids)]),
        ("?status=failed", [failed]),
        ("?domain=www.other.example", [later]),
        ("?due=true", list(reversed(ids))),
        ("?on_hold=true", [later]),
        ("?failing=true", [missed, failed]),
        ("?url=*/6", [failed]),
    ):
        answer = (await api.get(f"/api/v1/tasks{query}")).json
        assert [item["id"] for item in answer["items"]] == found, query
    first = (await api.get("/api/v1/tasks?limit=4")).json
    rest = (await api.get(f"/api/v1/tasks?limit=4&cursor={first['next_cursor']}")).json
    assert len(first["items"]) + len(rest["items"]) == 8
    assert (await api.get("/api/v1/tasks", params={"url": NASTY})).json["items"] == []
    assert (await api.get("/api/v1/tasks?domain=nowhere.example")).status == 404
    assert (await api.get("/api/v1/tasks?cursor=x")).status == 422
    assert (await api.get("/api/v1/tasks/999")).status == 404
    assert (await api.get("/api/v1/tasks/by-url?url=999")).status == 422


async def test_attempts_are_shown(api: Api, database: Database) -> None:
    task = await make_task(database, await make_domain(database, "shop.example"))
    await execute(
        database,
        """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       error_message)
            SELECT id, domain_id, 'download', 1, 1, 'failed', %s FROM crawl_tasks
            """,
        NASTY,
    )
    found = (await api.get(f"/api/v1/tasks/{task}")).json
    assert [(a["outcome"], a["error_message"]) for a in found["attempts"]] == [("failed", NASTY)]


async def test_the_scheduler(api: Api, database: Database, settings: Settings) -> None:
    await make_task(database, await make_domain(database, "shop.example"))
    before = (await api.get("/api/v1/scheduler")).json
    assert (before["ticked_at"], before["oldest_due"] is None) == (None, False)
    await Scheduler(database, settings).run_once()
    after = (await api.get("/api/v1/scheduler")).json
    assert after["ticked_at"] is not None
    stats = (await api.get("/api/v1/tasks/stats")).json
    assert (stats["counts"]["queued"], stats["backlog"][0]["domain"]) == (1, "shop.example")


# --- steering ----------------------------------------------------------------------------------


async def test_one_task_is_steered(api: Api, database: Database) -> None:
    domain = await make_domain(database, "shop.example")
    task = await make_task(database, domain, status="completed", next_crawl_in=3600)
    path = f"/api/v1/tasks/{task}"
    assert (await api.post(f"{path}/pause")).json["shown_status"] == "paused"
    assert (await api.post(f"{path}/stop")).json["hold"] == "stopped"
    assert (await api.post(f"{path}/resume")).json["hold"] is None
    assert (await api.post(f"{path}/recrawl")).json["status"] == "pending"
    changed = (await api.send("PATCH", path, {"priority": 1, "every": "2h"})).json
    assert (changed["priority"], changed["every"]) == (1, "2h")
    default = (await api.send("PATCH", path, {"every": None})).json
    assert (default["priority"], default["every"]) == (1, None)
    for wrong in ({}, {"every": "x"}, {"priority": -1}, {"priority": None}, {"colour": "red"}):
        assert (await api.send("PATCH", path, wrong)).status == 422, wrong
    assert (await api.send("DELETE", path)).json == {"removed": 1, "not_found": []}
    for method, more in (("DELETE", ""), ("POST", "/recrawl"), ("POST", "/pause"), ("GET", "")):
        assert (await api.send(method, path + more)).status == 404


async def test_many_tasks_are_steered(api: Api, database: Database) -> None:
    domain = await make_domain(database, "shop.example")
    ids = [await make_task(database, domain, n + 1) for n in range(4)]
    running = await make_task(database, domain, 9, status="crawling")
    assert (await api.post("/api/v1/tasks/pause", {"all": True})).json["all_hold"] == "paused"
    held = (await api.get("/api/v1/tasks?on_hold=true")).json["items"]
    assert {each["id"] for each in held} == {*ids, running}
    assert {each["held_by"] for each in held} == {"all tasks are paused"}
    assert (held[0]["hold"], held[0]["domain_hold"], held[0]["all_hold"]) == (None, None, "paused")
    assert (await api.get("/api/v1/tasks?on_hold=false")).json["items"] == []
    assert (await api.post("/api/v1/tasks/resume", {"all": True})).json["all_hold"] is None
    stopped = (await api.post("/api/v1/tasks/stop", {"domain": "shop.example"})).json
    assert (stopped["held_domains"], stopped["withdrawn"]) == (1, 1)
    withdrawn = (await api.get(f"/api/v1/tasks/{running}")).json
    assert (withdrawn["status"], withdrawn["held_by"]) == ("pending", "its domain is stopped")
    await api.post("/api/v1/tasks/resume", {"domain": "shop.example"})
    some = (await api.post("/api/v1/tasks/pause", {"ids": ids[:2]})).json
    assert (some["changed"], some["held_tasks"]) == (2, 2)
    recrawled = (await api.post("/api/v1/tasks/recrawl", {"status": ["pending"]})).json
    assert recrawled == {"found": 5, "due": 5, "on_hold": 2, "under_way": 0, "not_found": []}
    changed = await api.send("PATCH", "/api/v1/tasks", {"url": "*shop.example*", "every": "3h"})
    assert changed.json == {"changed": 5, "not_found": []}
    beside = {"ids": [ids[0], 998, 999]}
    for action in ("pause", "stop", "resume", "recrawl"):
        answer = await api.post(f"/api/v1/tasks/{action}", beside)
        assert (answer.status, answer.json["not_found"]) == (200, [998, 999]), action
    terms = await api.send("PATCH", "/api/v1/tasks", {**beside, "priority": 3})
    assert terms.json == {"changed": 1, "not_found": [998, 999]}
    for wrong in ({}, {"all": True, "ids": ids}, {"ids": [0]}, {"ids": [1] * 1001},
                  {"status": ["gone"]}):  # fmt: skip
        for action in ("pause", "recrawl", "remove"):
            assert (await api.post(f"/api/v1/tasks/{action}", wrong)).status == 422, wrong
    assert (await api.post("/api/v1/tasks/remove", {"ids": [999]})).status == 404
    assert (await api.post("/api/v1/tasks/remove", {"ids": [*ids, 999]})).json == {
        "removed": 4,
        "not_found": [999],
    }
    assert (await api.post("/api/v1/tasks/remove", {"all": True})).json["removed"] == 1


async def test_how_a_domain_treats_its_tasks(api: Api) -> None:
    path = "/api/v1/domains/shop.example"
    order = {"host": "shop.example", "every": "12h", "adaptive": True, "min_every": "1h"}
    made = (await api.post("/api/v1/domains", order)).json
    assert (made["every"], made["adaptive"], made["min_every"]) == ("12h", True, "1h")
    changes = {"every": None, "currency": "eur", "proxies": False, "allow_private": True}
    changed = (await api.send("PATCH", path, changes)).json
    assert (changed["every"], changed["min_every"]) == (None, "1h")
    assert (changed["currency"], changed["proxies"], changed["allow_private"]) == (
        "EUR",
        False,
        True,
    )
    for wrong in ({"max_every": "1s"}, {"every": "x"}, {"currency": "euro"}):
        assert (await api.send("PATCH", path, wrong)).status == 422, wrong
    await api.post("/api/v1/tasks/pause", {"domain": "shop.example"})
    assert (await api.get(path)).json["task_hold"] == "paused"


async def test_a_time_without_an_end_does_not_break_the_list(api: Api, database: Database) -> None:
    await track(api, LAMP, "https://shop.example/desk")
    await execute(
        database, "ALTER TABLE crawl_tasks DROP CONSTRAINT crawl_tasks_scheduled_at_check"
    )
    for time in ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC"):
        await execute(database, "UPDATE crawl_tasks SET scheduled_at = %s RETURNING 1", time)
        answer = await api.get("/api/v1/tasks")
        assert answer.status == 200, time
        assert len(answer.json["items"]) == 2
