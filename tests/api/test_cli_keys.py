"""Keys on the command line, and the server they open."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from uuid import UUID

import pytest
import requests

from api.server_process import api_process
from forager.cli.main import run
from support.cli import forager

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)


def test_a_key_is_made_shown_limited_and_revoked(capsys: Capture) -> None:
    assert run(["keys", "list"]) == 0
    assert "open to this machine alone" in capsys.readouterr().err
    assert run(["keys", "create", "first", "--scope", "admin"]) == 0
    capsys.readouterr()
    assert run(["keys", "create", "a <b>key</b>", "--expires-in-days", "90"]) == 0
    printed = capsys.readouterr()
    text = printed.out.strip()
    assert text.startswith("fgr_")
    assert text not in printed.err
    key_id = text.split("_")[1]
    assert run(["keys", "show", key_id, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["name"], shown["scope"], shown["state"]) == ("a <b>key</b>", "operate", "active")
    assert run(["keys", "set-quota", shown["user_id"], "--active-jobs", "2"]) == 0
    assert run(["keys", "show", text]) == 0
    assert text.split("_")[2] not in capsys.readouterr().out
    assert run(["keys", "owner", shown["user_id"]]) == 0
    assert "active jobs" in capsys.readouterr().out
    assert run(["keys", "revoke", key_id]) == 0
    capsys.readouterr()
    assert run(["keys", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["state"] == "revoked"


def test_keys_of_one_owner(capsys: Capture) -> None:
    owner = "0199a5c2-8a00-7000-8000-000000000000"
    for scope in ("admin", "read"):
        command = ["keys", "create", scope, "--scope", scope, "--owner", owner, "--json"]
        assert run(command) == 0
        made = json.loads(capsys.readouterr().out)
        assert (UUID(made["user_id"]), made["scope"]) == (UUID(owner), scope)
        assert made["key"].startswith(f"fgr_{made['id']}_")


@pytest.mark.parametrize(
    "command",
    [
        ["keys", "create", ""],
        ["keys", "create", "a\nb"],
        ["keys", "create", "a", "--expires-in-days", "soon"],
        ["keys", "create", "a", "--scope", "admin", "--owner", "a\nb"],
        ["keys", "create", "a", "--scope", "admin", "--visibility", "own"],
        ["keys", "create", "a", "--scope", "root"],
        ["keys", "show", "nobody"],
        ["keys", "revoke", "nobody"],
        ["keys", "set-quota", "me"],
    ],
)
def test_invalid_arguments_are_reported(command: list[str], capsys: Capture) -> None:
    assert run(command) == 2
    shown = capsys.readouterr().err
    assert "error: " in shown
    assert "Value error" not in shown
    if "me" in command:
        assert "there is no owner 'me'" in shown


def test_the_first_key_must_be_an_admin_key(capsys: Capture) -> None:
    for scope in ("read", "operate"):
        assert run(["keys", "create", "a", "--scope", scope]) == 4
        shown = capsys.readouterr().err
        assert "the first key must be an admin key" in shown
        assert "`forager keys create NAME --scope admin`" in shown
    assert run(["keys", "create", "a", "--scope", "admin"]) == 0
    assert run(["keys", "create", "a", "--scope", "read"]) == 0


def test_an_owner_has_a_name(capsys: Capture) -> None:
    made: list[dict[str, str]] = []
    for scope in ("admin", "read", "read"):
        owner = "team b" if made and scope == made[-1]["scope"] else "team a"
        assert run(["keys", "create", "k", "--scope", scope, "--owner", owner, "--json"]) == 0
        made.append(json.loads(capsys.readouterr().out))
    assert [key["owner"] for key in made] == ["team a", "team a", "team b"]
    assert made[0]["user_id"] == made[1]["user_id"] != made[2]["user_id"]
    assert [key["visibility"] for key in made] == ["everything", "own", "own"]
    assert run(["keys", "set-quota", "team b", "--active-jobs", "2"]) == 0
    capsys.readouterr()
    assert run(["keys", "owner", "team b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["quota"]["active_jobs"] == 2
    assert run(["keys", "create", "k", "--scope", "read", "--visibility", "everything"]) == 0
    assert "sees everything" in capsys.readouterr().err


def test_a_server_requires_the_key_and_stops_on_a_signal(tmp_path: Path, capsys: Capture) -> None:
    assert run(["keys", "create", "first", "--scope", "admin"]) == 0
    key = capsys.readouterr().out.strip()
    with api_process(tmp_path) as address:
        assert requests.get(f"{address}/readyz", timeout=30).json()["ready"] is True
        assert requests.get(f"{address}/api/v1/me", timeout=30).status_code == 401
        headers = {"Authorization": f"Bearer {key}", "X-Request-Id": "mine"}
        me = requests.get(f"{address}/api/v1/me", headers=headers, timeout=30)
        assert me.json()["scope"] == "admin"
    lines = [json.loads(line) for line in (tmp_path / "api.log").read_text().splitlines()]
    assert [line["path"] for line in lines if line.get("request_id") == "mine"] == ["/api/v1/me"]
    assert key not in (tmp_path / "api.log").read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])
def test_without_a_key_only_loopback(host: str) -> None:
    refused = forager("api", "--host", host, "--port", "0")
    assert refused.code == 4
    assert "without an API key the API listens on loopback only" in refused.err
    assert "forager keys create" in refused.err


def test_a_port_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = forager("api", "--port", taken.getsockname()[1])
    assert refused.code == 2
    assert "cannot listen" in refused.err
