"""`forager webhooks` and `forager events`, as people and programs use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from forager.cli.network.events import describe
from forager.db.database import Database
from forager.events.event import EventKind, EventRow, NewEvent
from forager.events.service import record_events
from forager.settings import load_settings
from forager.web.formats import MISSING
from forager.webhooks.delivery import Deliverer
from support import cli
from support.cli import Finished


def forager(*arguments: str, given: bytes = b"") -> Finished:
    """Run a command, which must print no secret."""
    answered = cli.forager(*arguments, stdin=given)
    for secret in SECRETS:
        assert secret not in answered.out + answered.err
    return answered


# what no command but `add` and `rotate-secret` may print
SECRETS: list[str] = []


@pytest.fixture(autouse=True)
def home(command_line: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_LOG_LEVEL", "debug")
    SECRETS.clear()


def add(url: str = "https://hooks.example/prices", *options: str) -> Any:
    found = forager("webhooks", "add", url, *options, "--json").json
    SECRETS.append(found["secret"])
    return found


class Handler(BaseHTTPRequestHandler):
    status = 200

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def happen(database_url: str, number: int = 1) -> None:
    async def record() -> None:
        async with Database(database_url) as database, database.transaction() as connection:
            event = NewEvent(EventKind.PRICE_CHANGED, None, None, {"old": "10", "new": "9"})
            await record_events(connection, [event] * number)

    asyncio.run(record())


def deliver(database_url: str) -> int:
    async def run() -> int:
        async with Database(database_url) as database:
            return await Deliverer(database, load_settings()).run_once()

    return asyncio.run(run())


def test_a_webhook_is_added_and_its_secret_shown_once() -> None:
    answered = forager("webhooks", "add", "https://hooks.example/", "--kind", "product.added")
    assert answered.code == 0
    secret = answered.out.split("secret")[1].strip()
    assert "not shown again" in answered.err
    assert secret.startswith("fgs_")
    SECRETS.append(secret)

    assert "product.added" in forager("webhooks", "list").out
    shown = forager("webhooks", "show", "1", "--json").json
    assert shown["url"] == "https://hooks.example/"
    assert "secret" not in shown
    assert "active" in forager("webhooks", "show", "1").out
    assert forager("webhooks", "list", "--json").json["next_cursor"] is None


def test_a_secret_can_be_given_in_a_file_or_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a-secret-from-a-file\n")
    assert add(*("https://a.example/", "--secret-file", str(file)))["secret"] == (
        "a-secret-from-a-file"
    )
    rotated = forager(
        "webhooks",
        "rotate-secret",
        "1",
        "--secret-file",
        "-",
        "--json",
        given=b"another-piped-one!",
    )
    assert rotated.json["secret"] == "another-piped-one!"
    missing = forager("webhooks", "rotate-secret", "1", "--secret-file", "nowhere")
    assert missing.code == 2
    assert "cannot be read" in missing.err
    odd = forager("webhooks", "rotate-secret", "1", "--secret-file", "-", given=b"\xff" * 20)
    assert odd.code == 2


def test_what_cannot_be_added_says_why() -> None:
    for arguments, words in {
        ("nonsense",): "not a URL",
        ("http://127.0.0.1/",): "--allow-private",
        ("https://a.example/", "--kind", "product.eaten"): "product.price_changed",
        ("https://a.example/", "--domain", "nowhere.example"): "no domain",
    }.items():
        refused = forager("webhooks", "add", *arguments)
        assert refused.code in (2, 4)
        assert words in refused.err
    assert "Nothing found" in forager("webhooks", "list").err
    assert forager("webhooks", "show", "7").code == 2


def test_a_webhook_is_changed_in_what_is_named() -> None:
    add()
    kinds = ("--kind", "product.added", "--kind", "product.price_changed")
    changed = forager("webhooks", "set", "1", "--url", "https://new.example/", *kinds, "--json")
    assert changed.json["url"] == "https://new.example/"
    assert changed.json["kinds"] == ["product.added", "product.price_changed"]
    assert changed.json["secret"] is None
    off = forager("webhooks", "set", "1", "--no-active", "--kind", "default")
    assert "by hand" in off.out
    assert "disabled: by hand" in forager("webhooks", "list").out
    assert "all events" in forager("webhooks", "list").out
    rotated = forager("webhooks", "set", "1", "--active", "--secret-file", "default", "--json").json
    assert (rotated["active"], rotated["secret"] in SECRETS) == (True, False)
    SECRETS.append(rotated["secret"])
    assert "https://new.example/" in forager("webhooks", "list").out
    for arguments, words in {
        (): "nothing to set",
        ("--url", "http://10.0.0.1/"): "--allow-private",
        ("--domain", "nowhere.example"): "no domain",
        ("--kind", "product.eaten"): "product.price_changed",
    }.items():
        refused = forager("webhooks", "set", "1", *arguments)
        assert refused.code in (2, 4)
        assert words in refused.err
    assert forager("webhooks", "set", "7", "--active").code == 2


def test_webhooks_are_disabled_enabled_and_removed() -> None:
    add()
    assert forager("webhooks", "disable", "1", "--reason", "moving").code == 0
    assert "disabled: moving" in forager("webhooks", "list").out
    assert forager("webhooks", "enable", "1", "--json").json["active"] is True
    unsure = forager("webhooks", "remove", "1")
    assert unsure.code == 2
    assert "Delete a webhook and its pending messages (1)? There is no terminal" in unsure.err
    assert "--yes" in unsure.err
    assert forager("webhooks", "remove", "1", "--yes").code == 0
    assert forager("webhooks", "list", "--json").json["items"] == []


def test_a_test_message_says_what_was_answered(
    receiver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(receiver, "--allow-private")
    assert "yes" in forager("webhooks", "test", "1").out.splitlines()[0]
    monkeypatch.setattr(Handler, "status", 500)
    refused = forager("webhooks", "test", "1", "--json")
    assert refused.code == 1
    assert refused.json["status"] == 500
    assert refused.json["taken"] is False


def test_deliveries_are_listed_and_retried(
    receiver: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(receiver, "--allow-private")
    assert "Nothing found" in forager("webhooks", "deliveries", "1").err
    happen(database_url, 2)
    monkeypatch.setattr(Handler, "status", 500)
    assert deliver(database_url) == 0
    assert "failing" in forager("webhooks", "list").out
    assert "answered 500" in forager("webhooks", "deliveries", "1").out

    monkeypatch.setattr(Handler, "status", 200)
    assert forager("webhooks", "retry", "1", "--json").json["messages"] == 2
    assert deliver(database_url) == 2
    sent = forager("webhooks", "deliveries", "1", "--state", "sent", "--limit", "1")
    assert "product.price_changed" in sent.out
    assert "--cursor" in sent.err
    assert forager("webhooks", "retry", "1", "--json").json["messages"] == 0
    message = forager("webhooks", "deliveries", "1", "--json").json["items"][0]["id"]
    shown = forager("webhooks", "delivery", "1", message).out
    assert all(text in shown for text in ('"status": 200', "answered 500", "price_changed"))
    both = forager("webhooks", "delivery", "1", message, "--json").json
    assert [each["status"] for each in both["responses"]] == [200, 500]
    assert both["payload"]["kind"] == "product.price_changed"


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        (
            "product.price_changed",
            {"name": "Lamp", "old": "10", "new": "9.50", "currency": "EUR", "percent": -5.0},
            "Lamp: EUR 10.00 → EUR 9.50 (-5 %)",
        ),
        (
            "product.price_changed",
            {"old": "10", "old_currency": "USD", "new": None, "currency": "EUR", "percent": None},
            "USD 10.00 → no price",
        ),
        (
            "product.availability_changed",
            {"name": "Lamp", "old": "in_stock", "new": None},
            "Lamp: in stock → unknown",
        ),
        (
            "product.added",
            {"name": "A\n\x1b[31mlamp", "price": "9", "currency": None, "availability": "in_stock"},
            "A \N{REPLACEMENT CHARACTER}[31mlamp: 9.00, in stock",
        ),
        (
            "parser.degraded",
            {"recent_pages": 100, "recent_rate": 0.5, "week_pages": 9, "week_rate": 0.994},
            "50 % of the newest 100 pages parsed without problems, 99 % before",
        ),
        (
            "parser.trial_ended",
            {"parser": "p", "version": "2", "active_version": "1", "reason": "it hangs"},
            "parser p: version 2 was stopped; version 1 stays active: it hangs",
        ),
        ("catalog.audit", {"checks": 12, "findings": []}, "12 checks, 0 findings"),
        (
            "catalog.audit",
            {"checks": 12, "findings": [{"check": "prices_differ", "count": 3}]},
            "12 checks, 1 finding: 3 prices differ",
        ),
        ("something.else", {"a": 1, "b": None}, "a: 1, b: None"),
        (
            "parser.degraded",
            {},
            f"{MISSING} of the newest 0 pages parsed without problems, {MISSING} before",
        ),
    ],
)
def test_events_are_described_in_one_line(kind: str, payload: dict[str, Any], words: str) -> None:
    assert describe(EventRow(1, kind, None, None, None, None, payload, datetime.now(UTC))) == words


def test_events_are_listed(database_url: str) -> None:
    assert "No events match" in forager("events", "list").err
    happen(database_url, 3)
    listed = forager("events", "list", "--limit", "2", "--json").json
    assert len(listed["items"]) == 2
    rest = forager("events", "list", "--cursor", listed["next_cursor"], "--json").json
    assert [event["id"] for event in rest["items"]] == [1]
    table = forager("events", "list", "--kind", "product.price_changed")
    assert "10.00 → 9.00" in table.out
    assert "{" not in table.out
    for since in "2000-01-01", "1h":
        assert forager("events", "list", "--since", since, "--json").json["items"] != []
    assert "No events match" in forager("events", "list", "--since", "2999-01-01").err
    assert forager("events", "list", "--since", "soon").code == 2
    assert forager("events", "list", "--kind", "product.eaten").code == 2
