"""`forager errors` and `forager dead-letters`, from the command to the tables."""

from __future__ import annotations

import pytest

from forager.db.database import Database
from support.cli import forager

DOMAIN = (
    "INSERT INTO domains (domain_name, base_url) VALUES ('shop.example', 'https://shop.example/')"
)
TASK = """
    INSERT INTO crawl_tasks (domain_id, url, url_hash, status, retry_count, error_kind)
    SELECT id, 'https://shop.example/' || n, sha256(n::text::bytea), 'failed', 3, 'http_client'
      FROM domains, generate_series(1, 3) AS n
"""
LETTER = """
    INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                              error_message, message_key, attempts)
    SELECT id, domain_id, url, 'download', 'http', 'http_client', 'the server answered 404',
           'the server answered 404', 4
      FROM crawl_tasks
"""
ERROR = """
    INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                            error_message, message_key, url, stack_trace)
    SELECT id, domain_id, 'download', 'http', 'http_client', 'the server answered 404',
           'the server answered 404', url, 'Traceback'
      FROM crawl_tasks
"""


@pytest.fixture(autouse=True)
async def letters(command_line: None, database: Database) -> None:
    async with database.transaction() as connection:
        for statement in (DOMAIN, TASK, LETTER, ERROR):
            await connection.execute(statement)


def test_errors_are_grouped_and_shown() -> None:
    table = forager("errors", "groups")
    assert (table.code, table.err) == (0, "")
    assert "the server answered 404" in table.out
    assert "shop.example" in table.out
    groups = forager("errors", "groups", "--type", "http", "--hours", "24", "--json").json
    assert [group["count"] for group in groups["items"]] == [3]
    listed = forager("errors", "list", "--limit", "2", "--json").json
    assert (len(listed["items"]), listed["next_cursor"] is not None) == (2, True)
    one = forager("errors", "show", str(listed["items"][0]["id"]))
    assert "Traceback" in one.out
    assert forager("errors", "groups", "--type", "weather").code == 2
    assert forager("errors", "groups", "--domain", "other.example").code == 2


def test_a_host_means_those_below_it_and_what_covers_it() -> None:
    assert len(forager("errors", "groups", "--domain", "example", "--json").json["items"]) == 1
    listed = forager("errors", "list", "--domain", "www.shop.example", "--json")
    assert len(listed.json["items"]) == 3
    assert forager("dead-letters", "list", "--domain", "hop.example").code == 2
    retried = forager("dead-letters", "retry", "--domain", "www.shop.example", "--json")
    assert retried.json["retried"] == 3


def test_dead_letters_are_listed_retried_and_dropped() -> None:
    listed = forager("dead-letters", "list", "--json").json
    groups = forager("dead-letters", "groups", "--json").json
    assert [group["count"] for group in groups["items"]] == [3]
    first, second, third = (item["id"] for item in listed["items"])
    assert "http_client" in forager("dead-letters", "list").out
    unselected = forager("dead-letters", "retry")
    assert (unselected.code, "no dead letter was selected" in unselected.err) == (2, True)
    assert forager("dead-letters", "retry", str(first), "--json").json == {
        "retried": 1,
        "not_found": [],
    }
    again = forager("dead-letters", "retry", str(first))
    assert (again.code, again.out) == (2, "")
    assert f"there is no open dead letter {first}" in again.err
    beside = forager("dead-letters", "drop", str(first), str(third), "--json")
    assert (beside.code, beside.json) == (2, {"dropped": 1, "not_found": [first]})
    assert f"there is no dead letter {first}; the others" in beside.err
    refused = forager("dead-letters", "drop", "--all")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert forager("dead-letters", "drop", str(second)).out == "dead letters dropped: 1\n"
    assert forager("dead-letters", "drop", "--all", "--yes", "--json").json["dropped"] == 0
    assert "no such dead letters" in forager("dead-letters", "list").err


def test_a_worker_must_have_something_to_do() -> None:
    assert forager("worker", "--no-jobs", "--no-tasks").code == 2
