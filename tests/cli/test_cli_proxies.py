from __future__ import annotations

import asyncio
from base64 import b64encode
from pathlib import Path

import pytest

from forager.db.database import Database
from forager.fetch.proxies.costs import UsageLog
from servers.hostile import HostileServer
from servers.proxies import HttpProxy, Socks5Proxy
from support import cli
from support.cli import Finished


def forager(*arguments: str, given: bytes = b"") -> Finished:
    """Run a command, which must print no password."""
    answered = cli.forager("proxies", *arguments, stdin=given)
    for secret in (PASSWORD, b64encode(f"ann:{PASSWORD}".encode()).decode()):
        assert secret not in answered.out + answered.err
    return answered


PASSWORD = "tr0ub4dor&3"


@pytest.fixture(autouse=True)
def home(command_line: None, tmp_path: Path) -> Path:
    return tmp_path / "home"


async def forager_meanwhile(*arguments: str) -> Finished:
    """The same, while servers of this loop can answer it."""
    return await asyncio.to_thread(forager, *arguments)


def test_a_proxy_is_added_listed_and_removed() -> None:
    added = forager("add", f"socks5://ann:{PASSWORD}@proxy.example:1080")
    assert (added.code, added.err) == (0, "")
    assert added.out == "added proxy 1: socks5://ann:***@proxy.example:1080\n"
    again = forager("add", f"socks5://ann:{PASSWORD}@proxy.example")
    assert again.out == "updated proxy 1: socks5://ann:***@proxy.example:1080\n"

    (listed,) = forager("list", "--json").json["items"]
    assert listed["url"] == "socks5://ann:***@proxy.example:1080"
    assert (listed["state"], listed["has_password"]) == ("active", True)
    assert (listed["success_count"], listed["avg_response_time_ms"]) == (0, None)
    assert "active" in forager("list").out

    assert forager("remove", "1").out == "removed proxy 1\n"
    assert forager("list", "--json").json == {"items": [], "next_cursor": None}
    assert "Nothing found" in forager("list").err


def test_disable_and_enable() -> None:
    forager("add", "http://a.example", "http://b.example")
    assert forager("disable", "1", "2", "--reason", "too slow").code == 0
    states = [(p["state"], p["disabled_reason"]) for p in forager("list", "--json").json["items"]]
    assert states == [("disabled", "too slow")] * 2
    assert "too slow" in forager("list").out
    assert forager("enable", "2").out == "enabled proxy 2: http://b.example:80\n"
    assert [p["state"] for p in forager("list", "--json").json["items"]] == ["disabled", "active"]


@pytest.mark.parametrize("command", ["enable", "disable", "remove", "test"])
def test_a_proxy_that_does_not_exist(command: str) -> None:
    answered = forager(command, "77")
    assert (answered.code, answered.out) == (2, "")
    assert "there is no proxy 77" in answered.err


def test_the_list_says_when_it_goes_on() -> None:
    forager("add", *(f"http://p{number}.example" for number in range(3)))
    first = forager("list", "--limit", "2", "--json").json
    assert first["next_cursor"] == "2"
    rest = forager("list", "--limit", "2", "--cursor", "2", "--json").json
    assert [p["id"] for p in first["items"] + rest["items"]] == [1, 2, 3]
    assert "--cursor 2" in forager("list", "--limit", "2").err


LINES = f"""\
# from the shop
http://a.example:3128

  socks5://ann:{PASSWORD}@b.example
ftp://ann:{PASSWORD}@c.example
http://ann:{PASSWORD}#@d.example
http://127.0.0.1:3128
https://e.example
""".encode()


def test_bad_lines_are_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "proxies.txt"
    file.write_bytes(b"\xef\xbb\xbf" + LINES + b"http://\xff.example\r\nhttp://f.example\r\n")
    answered = forager("add", "--file", str(file))
    assert answered.code == 2
    for line in (5, 6, 7, 9):
        assert f"line {line}: " in answered.err
    assert answered.err.count("error: ") == 4
    hosts = [proxy["host"] for proxy in forager("list", "--json").json["items"]]
    assert hosts == ["a.example", "b.example", "e.example", "f.example"]


def test_addresses_can_come_from_standard_input() -> None:
    answered = forager("add", "--file", "-", "--allow-private", "--json", given=LINES)
    assert [proxy["is_new"] for proxy in answered.json["items"]] == [True] * 4
    assert answered.json["failed"] == 2


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    assert "no proxy was given" in forager("add").err
    missing = forager("add", "--file", str(tmp_path / "missing"))
    assert (missing.code, "cannot be read" in missing.err) == (2, True)
    assert "Give a number, or all" in forager("test", "some").err


def test_the_guard_holds_for_the_proxy_itself() -> None:
    refused = forager("add", f"http://ann:{PASSWORD}@192.168.1.1:3128")
    assert refused.code == 4
    assert "--allow-private" in refused.err
    assert forager("add", "http://192.168.1.1:3128", "--allow-private").code == 0


async def test_a_test_goes_through_the_proxy() -> None:
    async with HostileServer() as site, HttpProxy("ann", PASSWORD) as good, Socks5Proxy() as other:
        await forager_meanwhile(
            "add",
            "--allow-private",
            f"http://ann:{PASSWORD}@127.0.0.1:{good.port}",
            f"http://ann:{PASSWORD}x@127.0.0.1:{good.port}".replace("ann", "bob"),
            f"socks5://127.0.0.1:{other.port}",
        )
        url = f"{site.url}/ok"
        tested = await forager_meanwhile("test", "1", "--url", url, "--allow-private", "--json")
        (item,) = tested.json["items"]
        assert (tested.code, item["ok"], item["status"]) == (0, True, 200)
        assert item["seconds"] > 0
        assert good.targets == [f"127.0.0.1:{site.port}"]

        everyone = await forager_meanwhile("test", "all", "--url", url, "--allow-private", "--json")
        assert everyone.code == 1
        assert [item["ok"] for item in everyone.json["items"]] == [True, False, True]
        assert "407" in everyone.json["items"][1]["error"]
        assert other.targets == [f"127.0.0.1:{site.port}"]

        refused = await forager_meanwhile("test", "1", "--url", url)
        assert (refused.code, "loopback" in refused.out) == (1, True)
        answers = await forager_meanwhile("test", "all")
        assert [line.split()[2] for line in answers.out.splitlines()[1:]] == ["ok", "failed", "ok"]


def test_without_the_key_the_other_commands_work(home: Path) -> None:
    forager("add", f"http://ann:{PASSWORD}@a.example", "http://b.example")
    key = home / "secret.key"
    key.chmod(0o644)
    answered = forager("test", "1")
    assert answered.code == 1
    assert f"chmod 600 {key}" in answered.err
    key.unlink()
    answered = forager("test", "all")
    assert "there is no key" in answered.err
    assert "FORAGER_SECRET_KEY" in answered.err
    assert len(forager("list", "--json").json["items"]) == 2
    assert forager("disable", "1").code == 0
    assert forager("remove", "1").code == 0


def test_another_key_in_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    right = b64encode(b"r" * 32).decode()
    monkeypatch.setenv("FORAGER_SECRET_KEY", right)
    forager("add", "--allow-private", f"http://ann:{PASSWORD}@127.0.0.1:9")
    monkeypatch.setenv("FORAGER_SECRET_KEY", b64encode(b"w" * 32).decode())
    assert "encrypted with another key" in forager("test", "1").err
    monkeypatch.setenv("FORAGER_SECRET_KEY", right)
    answered = forager("test", "1")
    assert (answered.code, answered.err) == (1, "")
    assert "failed" in answered.out


def test_proxies_are_added_with_what_they_cost() -> None:
    forager("add", "http://a.example:1", "http://b.example:1", "--cost", "5/GB", "--region", "eu")
    items = forager("list", "--json").json["items"]
    assert {(each["region"], each["cost"]["unit"]) for each in items} == {("eu", "GB")}
    # a new password takes nothing back
    forager("add", "http://a.example:1")
    assert forager("list", "--json").json["items"][0]["cost"]["unit"] == "GB"


def test_a_proxy_is_tied_to_a_region_and_given_a_price() -> None:
    forager("add", "http://a.example:1", "http://b.example:1")
    shown = forager("set", "1", "2", "--region", "eu", "--cost", "0.002/request", "--json")
    assert (shown.code, shown.err) == (0, "")
    cost = {"amount": "0.002", "unit": "request", "currency": "USD"}
    assert [(each["region"], each["cost"]) for each in shown.json["items"]] == [("eu", cost)] * 2
    assert shown.json["items"] == forager("list", "--json").json["items"]
    assert "0.002 USD/request" in forager("list").out
    changed = forager("set", "1", "--cost", "3.5 eur/gb", "--json").json
    assert changed["cost"] == {"amount": "3.50", "unit": "GB", "currency": "EUR"}
    assert changed["region"] == "eu"
    taken = forager("set", "1", "--cost", "default", "--region", "default", "--json").json
    assert (taken["cost"], taken["region"]) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["set", "1"], "nothing to set"),
        (["set", "1", "--cost", "a lot"], "not a valid proxy price"),
        (["set", "1", "--cost", "1/day"], "0.002/request"),
        (["set", "1", "--cost", "1 euros/GB"], "not a currency"),
        (["set", "1", "--region", "The EU"], "region must be up to 32"),
        (["set", "9", "--region", "eu"], "there is no proxy 9"),
        (["costs", "--days", "soon"], "--days must be a whole number"),
        (["costs", "--days", "0"], "--days must be at least 1"),
        (["costs", "--domain", ".."], "not a host"),
    ],
)
def test_mistakes_with_costs_are_explained(arguments: list[str], words: str) -> None:
    forager("add", "http://a.example:1")
    refused = forager(*arguments)
    assert refused.code != 0
    assert words in refused.err


async def test_costs_are_listed_by_domain(database: Database) -> None:
    assert "Nothing found" in (await forager_meanwhile("costs")).err
    await forager_meanwhile("add", "http://a.example:1", "http://b.example:1")
    await forager_meanwhile("set", "1", "--cost", "0.25/request")
    log = UsageLog(database)
    for host, proxy_id in (("shop.example", 1), ("shop.example", 1), ("other.example", 2)):
        log.add(proxy_id, host, 1500)
    await log.run_once()
    shown = await forager_meanwhile("costs", "--days", "7")
    assert "shop.example" in shown.out
    assert "0.50 USD" in shown.out
    assert "3 requests, 4.5 kB" in shown.out
    found = (await forager_meanwhile("costs", "--json")).json
    assert found["totals"] == {"USD": "0.50"}
    assert [line["domain"] for line in found["items"]] == ["shop.example", "other.example"]
    assert [line["cost"] for line in found["items"]] == ["0.50", None]
    cut = await forager_meanwhile("costs", "--limit", "1")
    assert "1 of 2 lines" in cut.out
    one = (await forager_meanwhile("costs", "--domain", "other.example", "--json")).json
    assert [line["requests"] for line in one["items"]] == [1]
