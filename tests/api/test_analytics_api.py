"""Questions to the lake over HTTP, before there is a lake."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from api.client import Api
from api.conftest import Keyed
from forager.access.caller import Scope
from forager.analytics.operations import ANALYSES
from forager.settings import Settings


async def test_questions_are_listed_and_asked(api: Api) -> None:
    listed = (await api.get("/api/v1/analytics")).json["items"]
    assert {each["name"] for each in listed} == {"price-changes", "crawl-cost", "parser-quality"}
    for each in listed:
        found = (await api.get(f"/api/v1/analytics/answer?query={each['name']}&days=7")).json
        assert (found["name"], found["days"], found["rows"]) == (each["name"], 7, [])
        assert found["complete_until"] is None


@pytest.mark.parametrize(
    ("asked", "status"),
    [("", 422), ("query=nothing", 404), ("query=crawl-cost&days=0", 422),
     ("query=crawl-cost&limit=0", 422), ("query=crawl-cost&days=x", 422)],
)  # fmt: skip
async def test_invalid_queries_are_rejected(api: Api, asked: str, status: int) -> None:
    assert (await api.get(f"/api/v1/analytics/answer?{asked}")).status == status


async def test_only_a_few_at_a_time(api: Api) -> None:
    with ANALYSES.taken(), ANALYSES.taken():
        refused = await api.get("/api/v1/analytics/answer?query=crawl-cost")
    assert refused.status == 429
    assert refused.headers["Retry-After"]


async def test_proxies_are_shown_to_those_who_may_see_them(keyed: Keyed) -> None:
    asked = "/api/v1/analytics/answer?query=crawl-cost"
    assert (await (await keyed(Scope.READ)).get(asked)).status == 403
    assert (await (await keyed(Scope.OPERATE)).get(asked)).status == 200


class TestServerAway:
    @pytest.fixture
    def api_settings(self, api_settings: Settings) -> Settings:
        """With an unreachable ClickHouse server."""
        away = SecretStr("clickhouse://forager:hush@127.0.0.1:9/forager")
        return api_settings.model_copy(update={"clickhouse_url": away})

    async def test_it_is_said_and_tried_again(self, api: Api) -> None:
        answer = await api.get("/api/v1/analytics/answer?query=crawl-cost")
        assert answer.status == 503
        assert "ClickHouse at 127.0.0.1" in answer.json["detail"]
        assert "hush" not in str(answer.json)
        assert answer.headers["Retry-After"]
