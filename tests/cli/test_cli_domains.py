from __future__ import annotations

import re
from functools import partial

import psycopg
import pytest

from support import cli

pytestmark = pytest.mark.usefixtures("command_line")

forager = partial(cli.forager, "domains")


def test_the_life_of_a_domain() -> None:
    added = forager("add", "https://Shop.example/", "--delay", "0.5", "--json")
    assert (added.code, added.json["host"]) == (0, "shop.example")
    changed = forager("set", "shop.example", "--delay", "default", "--concurrency", "2", "--json")
    [now] = changed.json["items"]
    assert (now["delay"], now["concurrency"]) == (None, 2)
    assert forager("disable", "shop.example", "--json").json["active"] is False
    assert re.search(r"active +no", forager("show", "www.shop.example").out)
    assert "disabled" in forager("list").out
    assert forager("enable", "shop.example", "--json").json["active"] is True
    proxied = forager("set", "shop.example", "--per-proxy-only", "--json")
    assert proxied.json["items"][0]["per_proxy_only"] is True


def test_list_as_json_by_pages() -> None:
    for name in ("b.example", "a.example", "c.example"):
        forager("add", name)
    page = forager("list", "--limit", "2", "--json").json
    assert [domain["host"] for domain in page["items"]] == ["a.example", "b.example"]
    rest = forager("list", "--cursor", page["next_cursor"], "--json").json
    assert [domain["host"] for domain in rest["items"]] == ["c.example"]
    assert rest["next_cursor"] is None
    assert "--cursor" in forager("list", "--limit", "2").err


@pytest.mark.parametrize(
    ("alarm", "effect"),
    [
        ("gone", "The pages of 2 tasks of shop.example are missing. Discontinue their products"),
        ("same_page", "The results of 1 task of shop.example are withheld because they look wrong"),
    ],
)
def test_accepting_withheld_results_says_what_changes_and_asks(
    database_url: str, alarm: str, effect: str
) -> None:
    forager("add", "shop.example")
    pages = [f"https://shop.example/p/{number}" for number in range(3)]
    assert cli.forager("products", "track", *pages).code == 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE crawl_tasks SET parser_version = '1'")
        connection.execute(
            """
            INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome,
                                       http_status)
            SELECT id, domain_id, 'download', 1, 1, a.outcome, a.status
              FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM crawl_tasks) AS t
              JOIN (VALUES (1, 'held', 404), (2, 'failed', 410), (3, 'ok', 200))
                AS a (n, outcome, status) USING (n)
            """
        )
        connection.execute(
            "INSERT INTO domain_health (domain_id, alarm, alarm_at)"
            " SELECT id, %s, now() FROM domains",
            (alarm,),
        )
    unsure = forager("resolve", "shop.example", "accept")
    assert (unsure.code, "There is no terminal to ask on" in unsure.err) == (2, True)
    assert effect in unsure.err
    assert forager("alarms", "--json").json["items"] != []
    assert forager("resolve", "shop.example", "accept", "--yes").code == 0
    assert forager("alarms", "--json").json["items"] == []


def test_what_is_blocked_is_shown(database_url: str) -> None:
    forager("add", "busy.example")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE domains SET blocked_until = now() + interval '1 hour', slow_delay = 2"
        )
    assert "blocked until" in forager("list", "--slowed").out
    shown = forager("show", "busy.example").out
    assert "in 59 min" in shown or "in 1 h" in shown
    assert re.search(r"slow delay +2", shown)
    assert forager("unblock", "busy.example", "--json").json["blocked_until"] is None
    assert "No domains match" in forager("list", "--slowed").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere.example"], "there is no domain nowhere.example"),
        (["set", "nowhere.example", "--delay", "1"], "there is no domain"),
        (["set", "nowhere.example"], "nothing to set"),
        (["add", "a b"], "is not a host"),
        (["add", "a.example", "--delay", "soon"], "--delay must be a number"),
        (["add", "a.example", "--delay", "-1"], "--delay must be at least 0"),
        (["add", "a.example", "--concurrency", "0"], "--concurrency must be at least 1"),
        (["list", "--cursor", "?"], "cursor"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], words: str) -> None:
    answered = forager(*arguments)
    assert answered.code == 2
    assert words in answered.err
    assert answered.out == ""


def test_a_domain_is_tied_to_a_region_and_let_go() -> None:
    made = forager("add", "shop.example", "--region", "eu", "--json")
    assert made.json["region"] == "eu"
    forager("add", "other.example")
    listed = forager("list", "--region", "eu", "--json").json["items"]
    assert [each["host"] for each in listed] == ["shop.example"]
    assert re.search(r"region +eu", forager("show", "shop.example").out)
    changed = forager("set", "shop.example", "--region", "us-east-1", "--json")
    assert changed.json["items"][0]["region"] == "us-east-1"
    freed = forager("set", "shop.example", "--region", "default", "--json")
    assert freed.json["items"][0]["region"] is None
    refused = forager("set", "shop.example", "--region", "The EU")
    assert refused.code != 0
    assert "region must be up to 32 lower-case letters" in refused.err


def test_a_list_is_removed_or_set_but_not_both() -> None:
    assert forager("add", "a.example", "--render-url", "/app/*").code == 0
    refused = forager("set", "a.example", "--render-url", "default", "--render-url", "/b/*")
    assert refused.code == 2
    assert "--render-url takes either `default`, which removes all, or values" in refused.err
    assert "/app/*" in forager("show", "a.example").out
    assert forager("set", "a.example", "--render-url", "default").code == 0
    assert "/app/*" not in forager("show", "a.example").out
