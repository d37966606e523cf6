"""Errors and dead letters over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from api.client import Api
from forager.access.caller import Scope
from forager.db.database import Database
from tasks.tasks_at_hand import make_domain, make_task, statuses

Keyed = Callable[..., Awaitable[Api]]

NASTY = "</pre><script>alert('x')</script> %s \x1b[31m"


@pytest.fixture
async def failed(database: Database) -> list[int]:
    """Three failed tasks of two shops, each with an error and a dead letter; their ids."""
    shop = await make_domain(database, "shop.example")
    other = await make_domain(database, "other.example")
    tasks = [
        await make_task(database, domain, n + 1, status="failed")
        for n, domain in enumerate((shop, shop, other))
    ]
    async with database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                    error_message, message_key, stack_trace)
            SELECT t.id, t.domain_id, 'download', 'network', 'timeout', %s, 'it took too long', %s
              FROM crawl_tasks t ORDER BY t.id
            """,
            (NASTY, NASTY),
        )
        await connection.execute(
            """
            INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                      error_message, message_key, attempts)
            SELECT t.id, t.domain_id, t.url, 'download', 'network',
                   CASE WHEN d.domain_name = 'shop.example' THEN 'timeout' ELSE 'tls' END,
                   %s, 'it took too long', 4
              FROM crawl_tasks t JOIN domains d ON d.id = t.domain_id ORDER BY t.id
            """,
            (NASTY,),
        )
    return tasks


async def test_errors_in_groups_and_one_by_one(api: Api, failed: list[int]) -> None:
    groups = (await api.get("/api/v1/errors/groups")).json["items"]
    assert [(g["domain"], g["count"]) for g in groups] == [
        ("shop.example", 2),
        ("other.example", 1),
    ]
    page = (await api.get("/api/v1/errors/groups?limit=1")).json
    rest = (await api.get(f"/api/v1/errors/groups?limit=1&cursor={page['next_cursor']}")).json
    assert [g["domain"] for g in page["items"] + rest["items"]] == ["shop.example", "other.example"]
    for query, count in (
        ("", 3),
        ("?domain=shop.example&type=network&hours=1", 2),
        (f"?task_id={failed[2]}", 1),
        ("?message=it took too long", 3),
        ("?type=parse", 0),
    ):
        assert len((await api.get(f"/api/v1/errors{query}")).json["items"]) == count, query
    first = (await api.get("/api/v1/errors?limit=2")).json
    last = (await api.get(f"/api/v1/errors?limit=2&cursor={first['next_cursor']}")).json
    assert [e["task_id"] for e in first["items"] + last["items"]] == sorted(failed, reverse=True)
    shown = (await api.get(f"/api/v1/errors/{first['items'][0]['id']}")).json
    assert (shown["error_message"], shown["stack_trace"]) == (NASTY, NASTY)
    assert (await api.get("/api/v1/errors/999")).status == 404
    for query in ("?type=bad", "?hours=0", "?hours=nan", "?cursor=x", f"?cursor={'9' * 5000}",
                  "?domain=a b", "?task_id=0"):  # fmt: skip
        assert (await api.get(f"/api/v1/errors{query}")).status == 422, query


async def test_dead_letters_are_retried_and_dropped(
    api: Api, failed: list[int], database: Database
) -> None:
    groups = (await api.get("/api/v1/dead-letters/groups")).json["items"]
    assert [(g["error_kind"], g["count"]) for g in groups] == [("timeout", 2), ("tls", 1)]
    letters = (await api.get("/api/v1/dead-letters?cause=timeout")).json["items"]
    assert [letter["task_id"] for letter in letters] == [failed[1], failed[0]]
    for wrong in ({}, {"cause": "boredom"}, {"ids": [0]}, {"ids": [1] * 1001}):
        for action in ("retry", "drop"):
            assert (await api.post(f"/api/v1/dead-letters/{action}", wrong)).status == 422
    unknown = await api.post("/api/v1/dead-letters/retry", {"ids": [999]})
    assert (unknown.status, "999" in unknown.json["detail"]) == (404, True)
    assert (await api.get("/api/v1/dead-letters?domain=nowhere.example")).status == 404
    one = f"/api/v1/dead-letters/{letters[0]['id']}"
    beside = {"ids": [letters[0]["id"], 999]}
    done = await api.post("/api/v1/dead-letters/retry", beside)
    assert done.json == {"retried": 1, "not_found": [999]}
    assert (await api.post(f"{one}/retry")).status == 404
    assert (await statuses(database))[failed[1]] == "pending"
    dropped = await api.post("/api/v1/dead-letters/drop", {"domain": "other.example"})
    assert dropped.json == {"dropped": 1, "not_found": []}
    assert (await api.post("/api/v1/dead-letters/retry", {"all": True})).json["retried"] == 1
    assert (await api.get("/api/v1/dead-letters")).json == {"items": [], "next_cursor": None}
    assert (await statuses(database))[failed[2]] == "failed"


async def test_readers_look_and_operators_decide(keyed: Keyed, failed: list[int]) -> None:
    reader, operator = await keyed(Scope.READ), await keyed(Scope.OPERATE)
    letter = (await reader.get("/api/v1/dead-letters")).json["items"][0]["id"]
    assert (await reader.post("/api/v1/dead-letters/retry", {"all": True})).status == 403
    assert (await reader.send("DELETE", f"/api/v1/dead-letters/{letter}")).status == 403
    assert (await operator.send("DELETE", f"/api/v1/dead-letters/{letter}")).json["dropped"] == 1
