"""The page of questions to the lake."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forager.analytics import engine
from forager.analytics.answers import QueryResult
from forager.analytics.clickhouse import ClickHouseUnavailable
from forager.analytics.lake import lake_folder
from forager.settings import Settings
from forager.web.routes import analytics
from web.browser import PHONE, open_browser, open_tab
from web.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>'


async def test_a_question_is_chosen_and_asked(visitor: Visitor) -> None:
    page = (await visitor.get("/analytics")).text
    assert "No data yet" in page
    assert '<option value="price-changes" selected>' in page
    page = (await visitor.get("/analytics?query=crawl-cost&days=7")).text
    assert '<option value="crawl-cost" selected>' in page


async def test_a_missing_extra_is_named_before_anything_is_copied(
    visitor: Visitor, web_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda _: None)
    page = (await visitor.get("/analytics")).text
    assert "Analytics needs DuckDB" in page
    assert "No data yet" not in page
    refused = await visitor.act("/analytics/sync", {})
    assert refused.status == 422
    assert "forager-crawler[analytics]" in refused.text
    assert not lake_folder(web_settings).exists()


async def test_what_is_typed_is_only_text(visitor: Visitor) -> None:
    for field in ("query", "days"):
        page = await visitor.get("/analytics", params={field: HOSTILE})
        assert page.status == 200
        assert 'class="notice error"' in page.text
        assert "<script>alert" not in page.text


async def test_an_unreachable_server_is_reported(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(*_: object, **__: int) -> QueryResult:
        raise ClickHouseUnavailable("ClickHouse at db.example cannot be used", hint="Look at it.")

    monkeypatch.setattr(analytics, "answer", answer)
    page = await visitor.get("/analytics")
    assert page.status == 200
    assert "ClickHouse at db.example cannot be used. Look at it." in page.text


async def test_an_answer_is_a_table(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine comes with an extra, and is asked in the tests that have it."""

    async def answer(*_: object, **how: int) -> QueryResult:
        rows = ((HOSTILE, 1234567, -2.5, 4_321_000), ("", 1, None, 0))
        at = datetime(2026, 11, 15, tzinfo=UTC)
        columns = ("brand", "changes", "median_percent", "bytes")
        return QueryResult(
            "price-changes", how["days"], columns, rows, is_cut=True, complete_until=at
        )

    monkeypatch.setattr(analytics, "answer", answer)
    page = (await visitor.get("/analytics?days=7")).text
    assert "<script>alert" not in page
    assert "median percent" in page
    assert "1,234,567" in page
    assert "-2.5" in page
    assert "4.3 MB" in page
    assert "More rows are available" in page


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1280, PHONE])
async def test_an_answer_fits_the_screen(
    address: str, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Whatever a shop calls its brand."""

    async def answer(*_: object, **how: int) -> QueryResult:
        columns = ("brand", *(f"largest_rise_percent_{number}" for number in range(12)))
        rows = (("x" * 500, *(10**15 for _ in range(12))), ("Ø & co", *(0.5 for _ in range(12))))
        at = datetime(2026, 11, 15, tzinfo=UTC)
        return QueryResult(
            "price-changes", how["days"], columns, rows, is_cut=False, complete_until=at
        )

    monkeypatch.setattr(analytics, "answer", answer)
    async with open_browser() as browser:
        tab, _ = await open_tab(browser, address, width=width)
        await tab.go("/analytics")
        assert await tab.page.locator("tbody tr").count() == 2
        assert (await tab.overflow(), tab.complaints) == (0, [])


async def test_data_is_copied_with_one_click(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analytics, "check_engine", lambda _: None)
    done = await visitor.act("/analytics/sync")
    assert "copied" in done.text
    assert "No data yet" not in (await visitor.get("/analytics")).text
