from __future__ import annotations

from functools import partial

import psycopg
import pytest

from support import cli

pytestmark = pytest.mark.usefixtures("command_line")

forager = partial(cli.forager, "domains")


def test_the_life_of_a_domain() -> None:
    added = forager("add", "https://Shop.example/", "--delay", "0.5", "--json")
    assert (added.code, added.json["domain_name"]) == (0, "shop.example")
    changed = forager("set", "shop.example", "--delay", "default", "--concurrency", "2", "--json")
    assert changed.json["crawl_delay_seconds"] is None
    assert changed.json["max_concurrent_requests"] == 2
    assert forager("disable", "shop.example", "--json").json["is_active"] is False
    assert "disabled" in forager("show", "www.shop.example").out
    assert "disabled" in forager("list").out
    assert forager("enable", "shop.example", "--json").json["is_active"] is True
    proxied = forager("set", "shop.example", "--per-proxy-only", "--json")
    assert proxied.json["per_proxy_only"] is True


def test_list_as_json_by_pages() -> None:
    for name in ("b.example", "a.example", "c.example"):
        forager("add", name)
    page = forager("list", "--limit", "2", "--json").json
    assert [domain["domain_name"] for domain in page["items"]] == ["a.example", "b.example"]
    rest = forager("list", "--cursor", page["next_cursor"], "--json").json
    assert [domain["domain_name"] for domain in rest["items"]] == ["c.example"]
    assert rest["next_cursor"] is None
    assert "--cursor" in forager("list", "--limit", "2").err


def test_what_is_blocked_is_shown(database_url: str) -> None:
    forager("add", "busy.example")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "UPDATE domains SET blocked_until = now() + interval '1 hour', slow_delay = 2"
        )
    assert "blocked until" in forager("list", "--slowed").out
    shown = forager("show", "busy.example").out
    assert "in 59 min" in shown or "in 1 h" in shown
    assert "2 s more" in shown
    assert forager("unblock", "busy.example", "--json").json["blocked_until"] is None
    assert "No domains match" in forager("list", "--slowed").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere.example"], "there is no domain nowhere.example"),
        (["set", "nowhere.example", "--delay", "1"], "there is no domain"),
        (["set", "nowhere.example"], "nothing to set"),
        (["add", "a b"], "is not a host"),
        (["add", "a.example", "--delay", "soon"], "--delay needs a number"),
        (["add", "a.example", "--delay", "-1"], "must be 0 to"),
        (["add", "a.example", "--concurrency", "0"], "must be 1 to"),
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
    assert [each["domain_name"] for each in listed] == ["shop.example"]
    assert "eu: only its workers crawl it" in forager("show", "shop.example").out
    changed = forager("set", "shop.example", "--region", "us-east-1", "--json")
    assert changed.json["region"] == "us-east-1"
    assert forager("set", "shop.example", "--region", "default", "--json").json["region"] is None
    refused = forager("set", "shop.example", "--region", "The EU")
    assert refused.code != 0
    assert "eu or us-east-1" in refused.err
