"""The queries of the how-to on SQL, and `forager db url` and `psql`."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from support.cli import forager, forager_process

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "query-with-sql.md"
QUERIES = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_every_query_of_the_page_runs(database_url: str) -> None:
    assert len(QUERIES) > 10
    with psycopg.connect(database_url) as connection:
        for query in QUERIES:
            connection.execute(query.encode())
        tracked = connection.execute("SELECT url, priority FROM crawl_tasks").fetchall()
        assert tracked == [("https://shop.example.com/product1", 5)]


@pytest.mark.usefixtures("command_line")
def test_psql_opens_the_configured_database(database_url: str) -> None:
    assert forager("db", "url").out.strip() == database_url
    done = forager_process("db", "psql", "-At", "-c", "SELECT count(*) FROM crawl_jobs")
    assert (done.code, done.out) == (0, "0\n")
    assert forager_process("db", "psql", "-c", "SELECT nonsense").code == 1


@pytest.mark.usefixtures("command_line")
def test_without_psql_the_connection_string_is_shown(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for find in ("bundled_client", "installed_client"):
        monkeypatch.setattr(f"forager.db.clients.{find}", lambda _name: None)
    refused = forager("db", "psql")
    assert refused.code == 2
    assert database_url in refused.err
    assert "postgresql-client" in refused.err
