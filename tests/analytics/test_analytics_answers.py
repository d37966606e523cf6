"""Queries before the first sync, and unknown queries."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from forager.analytics import engine
from forager.analytics.answers import answer, list_queries, sources_in
from forager.analytics.dataset import DATASETS
from forager.analytics.lake import lake_folder, read_state
from forager.analytics.sync import sync
from forager.cli.main import run
from forager.db.database import Database
from forager.errors import InvalidInput, NotFound
from forager.settings import Settings, load_settings


async def test_without_a_lake_there_is_nothing(settings: Settings) -> None:
    for query in list_queries():
        found = await answer(settings, query.name)
        assert (found.rows, found.complete_until, found.is_cut) == ((), None, False)


async def test_only_known_questions_in_sane_numbers(settings: Settings) -> None:
    with pytest.raises(NotFound, match="no query"):
        await answer(settings, "'; DROP TABLE")
    for days in (0, -1, 3_661, 10**6):
        with pytest.raises(InvalidInput, match="days"):
            await answer(settings, "price-changes", days=days)
    with pytest.raises(InvalidInput, match="limit"):
        await answer(settings, "price-changes", limit=0)


async def test_what_is_missing_is_named(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sync(database, settings)
    monkeypatch.setattr(engine, "find_spec", lambda _: None)
    for work in (answer(settings, "price-changes"), sync(database, settings)):
        with pytest.raises(InvalidInput, match="DuckDB") as caught:
            await work
        assert "forager-crawler[analytics]" in str(caught.value.hint)


def test_every_question_is_put_together(tmp_path: Path) -> None:
    sources = sources_in(tmp_path)
    assert sources.keys() == {each.name for each in DATASETS}
    for query in list_queries():
        assert "{" not in query.sql.format(days=1, rows=1, **sources)


def test_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analytics", "list"]) == 0
    assert "parser-quality" in capsys.readouterr().out
    assert run(["analytics", "run", "crawl-cost"]) == 0
    assert "forager analytics sync" in capsys.readouterr().err
    assert run(["analytics", "run", "nothing"]) != 0
    assert "forager analytics list" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://ch.example:8123", "clickhouse:///db", "clickhouse://["])
def test_what_is_no_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_CLICKHOUSE_URL", url)
    with pytest.raises(InvalidInput, match=r"(?i)clickhouse_url"):
        load_settings()


async def test_the_driver_that_is_missing_is_named(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is copied."""
    url = SecretStr("clickhouse://forager:hush@127.0.0.1:9/forager")
    monkeypatch.setitem(sys.modules, "clickhouse_connect.driver", None)
    with pytest.raises(InvalidInput, match="clickhouse-connect") as caught:
        await sync(database, settings.model_copy(update={"clickhouse_url": url}))
    assert "forager-crawler[clickhouse]" in str(caught.value.hint)
    assert read_state(lake_folder(settings)) is None
