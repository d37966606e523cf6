"""Webhooks and events over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from psycopg.types.json import Json

from api.client import Api
from forager.access.caller import Scope
from forager.db.database import Database
from forager.db.ids import new_id
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.settings import Settings
from forager.webhooks.delivery import Deliverer
from forager.webhooks.signing import verify_signature
from products.rows import add_product
from support.sql import execute
from webhooks.receiver import Receiver, answering

Keyed = Callable[..., Awaitable[Api]]

HOOK = "https://hooks.example.org/prices"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as server:
        yield server


async def add(api: Api, url: str, **order: Any) -> Any:
    answer = await api.post("/api/v1/webhooks", {"url": url, **order})
    assert answer.status == 201, answer.body
    return answer.json


async def happen(database: Database, product_id: int) -> None:
    event = NewEvent(EventKind.PRICE_CHANGED, product_id, None, {"new": "<b>9</b>"})
    async with database.transaction() as connection:
        await record_events(connection, [event])


async def test_the_secret_is_shown_once(api: Api) -> None:
    made = await add(api, HOOK, kinds=["product.price_changed"])
    assert made["secret"].startswith("fgs_")
    path = f"/api/v1/webhooks/{made['id']}"
    for answer in (await api.get("/api/v1/webhooks"), await api.get(path)):
        assert b"secret" not in answer.body
    rotated = await api.post(f"{path}/rotate-secret")
    assert (rotated.status, rotated.json["secret"] != made["secret"]) == (201, True)
    own = await api.post(f"{path}/rotate-secret", {"secret": "s" * 20})
    assert own.json["secret"] == "s" * 20
    assert (await api.post(f"{path}/rotate-secret", {"secret": "short"})).status == 422


async def test_the_same_order_makes_one_webhook(api: Api, database: Database) -> None:
    key = {"Idempotency-Key": "hook"}
    first = await api.post("/api/v1/webhooks", {"url": HOOK}, headers=key)
    again = await api.post("/api/v1/webhooks", {"url": HOOK}, headers=key)
    assert (again.status, again.json) == (201, first.json)
    [row] = await execute(database, "SELECT answer FROM idempotency_keys")
    assert first.json["secret"].encode() not in bytes(row[0])
    assert (await api.post("/api/v1/webhooks", {"url": HOOK})).status == 409


async def test_a_webhook_is_changed(api: Api, keyed: Keyed) -> None:
    made = await add(api, HOOK, kinds=["product.price_changed"])
    await add(api, "https://other.example.org/")
    path = f"/api/v1/webhooks/{made['id']}"
    order = {"url": "https://new.example.org/hook", "kinds": [], "active": False}
    changed = (await api.send("PATCH", path, order)).json
    assert (changed["url"], changed["kinds"], changed["active"]) == (*order.values(),)
    assert changed["secret"] is None
    assert (await api.get(path)).json["disabled_reason"] == "by hand"
    renewed = (await api.send("PATCH", path, {"active": True, "secret": None})).json
    assert (renewed["active"], renewed["url"]) == (True, order["url"])
    assert renewed["secret"] not in (None, made["secret"])
    for wrong, status in (
        ({}, 422),
        ({"url": ""}, 422),
        ({"urls": HOOK}, 422),
        ({"kinds": ["all"]}, 422),
        ({"url": "http://127.0.0.1/x"}, 403),
        ({"url": "https://other.example.org/"}, 409),
        ({"domain": "no.example"}, 404),
    ):
        answer = await api.send("PATCH", path, wrong)
        assert (answer.status, answer.is_problem) == (status, True), wrong
    private = {"url": "http://127.0.0.1/x", "allow_private": True}
    assert (await api.send("PATCH", path, private)).status == 200
    assert (await api.send("PATCH", path, {"allow_private": False})).status == 403
    assert (await api.send("PATCH", "/api/v1/webhooks/999", order)).status == 404
    operator = await keyed(Scope.OPERATE)
    assert (await operator.send("PATCH", path, order)).status == 403


async def test_the_guard_applies(api: Api) -> None:
    for url in ("http://127.0.0.1/x", "http://[::1]/x", "http://169.254.169.254/", "http://0x7f.1/",
                "http://localhost/x", "http://printer.local/"):  # fmt: skip
        answer = await api.post("/api/v1/webhooks", {"url": url})
        assert (answer.status, answer.is_problem) == (403, True), url
    metadata = {"url": "http://169.254.169.254/", "allow_private": True}
    assert (await api.post("/api/v1/webhooks", metadata)).status == 403
    for url in ("ftp://a.example/", "nonsense", "https://me:pw@a.example/", "javascript:alert(1)"):
        assert (await api.post("/api/v1/webhooks", {"url": url})).status == 422, url
    assert (await api.post("/api/v1/webhooks", {"url": HOOK, "kinds": ["all"]})).status == 422
    assert (await api.post("/api/v1/webhooks", {"url": HOOK, "domain": "no.example"})).status == 404


async def test_messages_are_sent_listed_and_sent_again(
    api: Api, database: Database, settings: Settings, receiver: Receiver
) -> None:
    product = await add_product(database, 1)
    made = await add(api, receiver.url, allow_private=True)
    path = f"/api/v1/webhooks/{made['id']}"
    tried = (await api.post(f"{path}/test")).json
    assert (tried["taken"], tried["status"], tried["error"]) == (True, 204, None)
    verify_signature(
        made["secret"], receiver.got[0].headers["forager-signature"], receiver.got[0].body
    )
    receiver.answer = answering(500)
    assert (await api.post(f"{path}/test")).json["taken"] is False
    await happen(database, product)
    await Deliverer(database, settings).run_once()
    [waiting] = (await api.get(f"{path}/deliveries?state=waiting")).json["items"]
    assert (waiting["attempts"], "500" in waiting["last_error"]) == (1, True)
    assert (await api.get(path)).json["waiting"] == 1
    renewed = await api.post(f"{path}/retry", {"messages": [waiting["id"]]})
    assert renewed.json == {"webhook_id": made["id"], "messages": 1}
    receiver.answer = answering(200)
    await Deliverer(database, settings).run_once()
    assert len((await api.get(f"{path}/deliveries?state=sent")).json["items"]) == 1
    shown = (await api.get(f"{path}/deliveries/{waiting['id']}")).json
    assert shown["payload"]["product"]["id"] == product
    assert [each["status"] for each in shown["responses"]] == [200, 500]
    assert (await api.get(f"{path}/deliveries/999999")).status == 404
    disabled = (await api.post(f"{path}/disable", {"reason": "<i>moved</i>"})).json
    assert (disabled["active"], disabled["disabled_reason"]) == (False, "<i>moved</i>")
    assert (await api.post(f"{path}/retry")).status == 409
    assert (await api.post(f"{path}/enable")).json["active"] is True
    assert (await api.send("DELETE", path)).json == {"id": made["id"]}
    for method, more in (("GET", ""), ("GET", "/deliveries"), ("POST", "/test"), ("POST", "/retry"),
                         ("POST", "/enable"), ("POST", "/rotate-secret")):  # fmt: skip
        assert (await api.send(method, path + more)).status == 404, more


async def test_events(api: Api, database: Database) -> None:
    products = [await add_product(database, n) for n in (1, 2)]
    for product in (*products, products[0]):
        await happen(database, product)
    for query, count in (
        ("", 3),
        (f"?product_id={products[0]}", 2),
        ("?kind=product.price_changed&since=2001-01-01", 3),
        ("?kind=catalog.audit", 0),
        ("?domain=shop.example", 0),
    ):
        found = (await api.get(f"/api/v1/events{query}")).json["items"]
        assert len(found) == count, query
    first = (await api.get("/api/v1/events?limit=2")).json
    rest = (await api.get(f"/api/v1/events?limit=2&cursor={first['next_cursor']}")).json
    assert len(first["items"]) + len(rest["items"]) == 3
    assert rest["items"][0]["payload"] == {"new": "<b>9</b>"}
    for query in ("?kind=x", "?since=x", "?cursor=x", "?product_id=0"):
        assert (await api.get(f"/api/v1/events{query}")).status == 422


async def test_operators_look_and_admins_change(keyed: Keyed) -> None:
    reader, operator = await keyed(Scope.READ), await keyed(Scope.OPERATE)
    admin = await keyed(Scope.ADMIN)
    made = await add(admin, HOOK)
    path = f"/api/v1/webhooks/{made['id']}"
    assert (await reader.get("/api/v1/events")).status == 200
    assert (await reader.get("/api/v1/webhooks")).status == 403
    assert (await operator.get(path)).status == 200
    for action in ("test", "disable", "enable", "retry", "rotate-secret"):
        assert (await operator.post(f"{path}/{action}")).status == 403, action
    assert (await operator.send("DELETE", path)).status == 403
    assert (await operator.post("/api/v1/webhooks", {"url": "https://b.example/"})).status == 403


async def test_messages_of_other_owners_show_neither_event_nor_response(
    keyed: Keyed, database: Database
) -> None:
    """Receivers may repeat what they were sent."""
    admin, operator = await keyed(Scope.ADMIN), await keyed(Scope.OPERATE)
    made = await add(admin, HOOK)
    for source in ("alder.example", None):
        event = NewEvent(
            EventKind.CRAWL_FAILED, None, None, {"why": "alder"}, source_id=source, user_id=new_id()
        )
        async with database.transaction() as connection:
            await record_events(connection, [event])
    responses = [{"attempt": 1, "at": "2026-01-01T00:00:00+00:00", "status": 500, "error": "alder",
                  "seconds": 1, "headers": {}, "body": "alder"}]  # fmt: skip
    await execute(database, "UPDATE outbox SET responses = %s", Json(responses))
    path = f"/api/v1/webhooks/{made['id']}/deliveries"
    messages = [each["id"] for each in (await admin.get(path)).json["items"]]
    assert len(messages) == 2
    for message in messages:
        assert (await admin.get(f"{path}/{message}")).json["payload"]
        shown = (await operator.get(f"{path}/{message}")).json
        assert (shown["payload"], shown["responses"]) == (None, [])


async def test_alert_rules(api: Api, keyed: Keyed, database: Database) -> None:
    product = await add_product(database, 1)
    below = {"kind": "price_below", "amount": "40", "currency": "eur", "product": str(product)}
    made = await api.post("/api/v1/alerts", below)
    assert made.status == 201, made.body
    expected = {"amount": "40", "currency": "EUR", "product_id": product, "selection": {}}
    assert made.json.items() >= expected.items()
    assert (await api.post("/api/v1/alerts", below)).status == 409
    assert (await api.post("/api/v1/alerts", {"kind": "new_low"})).status == 422
    reader = await keyed(Scope.READ)
    assert [rule["id"] for rule in (await reader.get("/api/v1/alerts")).json["items"]] == [
        made.json["id"]
    ]
    path = f"/api/v1/alerts/{made.json['id']}"
    assert (await reader.send("DELETE", path)).status == 403
    operator = await keyed(Scope.OPERATE)
    answers = [(await operator.send("DELETE", path)).status for _ in range(2)]
    assert answers == [200, 404]
