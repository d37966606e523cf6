"""`forager search` beside `forager search reindex`."""

from __future__ import annotations

import pytest

from forager.cli import main


@pytest.fixture(autouse=True)
def own_database(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_LOG_LEVEL", "critical")


def test_whatever_is_no_command_is_looked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["words"], ["--", "reindex"], ["re", "index"], ["--limit", "3", "x"]):
        assert main.run(["search", *words]) == 0, words
        assert "Nothing has been published yet." in capsys.readouterr().err
    assert main.run(["search"]) == 2
    assert main.run(["search", "--limit", "0", "x"]) == 2


def test_an_index_needs_an_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["search", "reindex"]) == 2
    said = capsys.readouterr().err
    assert "there is no search engine" in said
    assert "FORAGER_OPENSEARCH_URL" in said


def test_an_engine_that_is_away_is_an_error_of_reindex_and_a_note_of_search(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORAGER_SEARCH", "opensearch")
    monkeypatch.setenv("FORAGER_OPENSEARCH_URL", "http://me:secret@127.0.0.1:1")
    assert main.run(["search", "reindex"]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:1" in said
    assert "secret" not in said
    for command in (["search", "x"], ["products", "search", "x"]):
        assert main.run(command) == 0
        assert "PostgreSQL has answered instead" in capsys.readouterr().err


def test_help_is_about_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["search", "--help"]) == 0
    assert "Search published documents" in capsys.readouterr().out
    assert main.run(["search", "reindex", "--help"]) == 0
    assert "Rebuild the indexes" in capsys.readouterr().out
