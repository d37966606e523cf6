"""Parsers over HTTP: compared on archived pages, tried, rolled out and rolled back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from api.client import Api
from forager.access.caller import Scope
from forager.api import services
from forager.db.database import Database
from forager.settings import Settings
from parsers.archived_kiosk import Kiosk, item, kiosk_parsers

Keyed = Callable[..., Awaitable[Api]]


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    with kiosk_parsers():
        yield


async def states(api: Api) -> dict[str, str]:
    items = (await api.get("/api/v1/parsers")).json["items"]
    return {each["version"]: each["state"] for each in items if each["name"] == "kiosk"}


async def test_a_version_is_compared_tried_and_rolled_back(
    api: Api, database: Database, settings: Settings
) -> None:
    kiosk = Kiosk(database, settings)
    await kiosk.archive([(n, item(n)) for n in range(1, 4)])
    installed = list(await states(api))
    old, new = installed[0], installed[-1]
    report = (await api.post("/api/v1/parsers/kiosk/backtest", {"against": old})).json
    assert (report["pages"], report["truncated"], report["unreadable"]) == (3, False, 0)
    assert (report["old"]["version"], report["new"]["version"]) == (old, new)
    assert report["fields"]["name"]["equal"] == 3
    cut = await api.post("/api/v1/parsers/kiosk/backtest", {"against": old, "limit": 1})
    assert (cut.json["pages"], cut.json["truncated"]) == (1, True)
    await api.post("/api/v1/parsers/kiosk/rollout", {"version": old})
    tried = await api.post("/api/v1/parsers/kiosk/rollout", {"version": new, "canary": 0.1})
    assert (tried.json["active_version"], tried.json["canary_share"]) == (old, 0.1)
    assert (await states(api))[new] == "canary"
    ended = (await api.post("/api/v1/parsers/kiosk/rollback")).json
    assert ended["canary_version"] is None
    rolled = (await api.post("/api/v1/parsers/kiosk/rollout", {"version": new})).json
    assert (rolled["active_version"], rolled["previous_version"]) == (new, old)
    back = (await api.post("/api/v1/parsers/kiosk/rollback")).json
    assert back["active_version"] == old
    assert (await api.post("/api/v1/parsers/kiosk/rollback")).status == 409


async def test_what_cannot_be_compared_or_rolled_out(api: Api) -> None:
    newest = list(await states(api))[-1]
    backtest, rollout = "/api/v1/parsers/kiosk/backtest", "/api/v1/parsers/kiosk/rollout"
    assert (await api.post(backtest, {"against": newest})).status == 422
    assert (await api.post(backtest, {"against": "99"})).status == 404
    assert (await api.post(backtest, {"against": newest, "limit": 501})).status == 422
    assert (await api.post(rollout, {"version": "99"})).status == 404
    assert (await api.post(rollout, {"version": newest, "canary": 1.5})).status == 422
    assert (await api.post("/api/v1/parsers/..%2Fx/rollout", {"version": "1"})).status == 404
    assert (await api.post("/api/v1/parsers/none/rollback")).status == 409


async def test_one_backtest_at_a_time_and_for_a_minute(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest = {"against": next(iter(await states(api)))}
    with services.BACKTESTS.taken():
        assert (await api.post("/api/v1/parsers/kiosk/backtest", oldest)).status == 429
    monkeypatch.setattr(services, "BACKTEST_SECONDS", 0.0)
    late = await api.post("/api/v1/parsers/kiosk/backtest", oldest)
    assert (late.status, "longer" in late.json["detail"]) == (409, True)
    # and what it had taken is free again
    monkeypatch.setattr(services, "BACKTEST_SECONDS", 60.0)
    assert (await api.post("/api/v1/parsers/kiosk/backtest", oldest)).json["pages"] == 0


async def test_rates(api: Api, database: Database) -> None:
    assert (await api.get("/api/v1/parsers/rates")).json == {"items": [], "next_cursor": None}
    of_shop = "/api/v1/parsers/rates?domain=shop.example&limit=5"
    assert (await api.get(of_shop)).status == 404
    await api.post("/api/v1/domains", {"host": "shop.example"})
    assert (await api.get(of_shop)).status == 200
    for cursor in ("AAAA", "WzFd", "é", "IiI="):
        answer = await api.get("/api/v1/parsers/rates", params={"cursor": cursor})
        assert answer.status == 422, cursor


async def test_readers_look_and_admins_decide(keyed: Keyed) -> None:
    reader, operator = await keyed(Scope.READ), await keyed(Scope.OPERATE)
    assert (await reader.get("/api/v1/parsers")).status == 200
    for path, body in (("rollout", {"version": "1"}), ("rollback", None),
                       ("backtest", {"against": "1"})):  # fmt: skip
        assert (await operator.post(f"/api/v1/parsers/kiosk/{path}", body)).status == 403
