"""Whatever can be done on the command line can be done over HTTP, and the reverse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import pytest
import typer

import forager
from api.client import Api
from forager.api.actions import API, as_call, forms
from forager.cli.main import app
from forager.hints import Action, Hint, Option, action, render

# they run processes, or work on files and settings of the server
LOCAL = {
    "up", "api", "worker", "scheduler", "watchdog", "doctor", "demo", "fetch", "parse",
    "support-bundle", "parsers new", "parsers test", "config show", "db current", "db upgrade",
    "db downgrade", "db backup", "db restore", "search reindex", "analytics sync",
    "archive list", "archive show", "archive verify", "archive prune", "archive read",
    "archive migrate", "mcp", "db stop", "db url", "db psql",
    "skill show", "skill install",
}  # fmt: skip

# A user of the command line has no account to ask about.
REMOTE = {"GET /me"}


def commands(command: Any, *names: str) -> Iterator[str]:
    """Everything that can be typed, below a group of commands."""
    inner: Any = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield " ".join(names)
    for name in inner:
        # a hidden one is what the group does by itself
        yield from commands(inner[name], *names, *([] if inner[name].hidden else [name]))


@pytest.fixture
def operations(document: dict[str, Any]) -> set[str]:
    return {
        f"{method.upper()} {path.removeprefix(API)}"
        for path, methods in document["paths"].items()
        for method in methods
        if path.startswith(f"{API}/")
    }


def test_every_command_is_an_action() -> None:
    typed = set(commands(typer.main.get_command(app)))
    assert {name.partition(" --")[0] for name in forms()} == typed - LOCAL
    assert typed >= LOCAL


def test_every_call_has_its_command(operations: set[str]) -> None:
    named = {call for each in forms().values() for call in each.calls}
    assert operations - named == REMOTE
    assert named <= operations


@pytest.mark.parametrize(
    ("part", "call"),
    [
        (action("jobs list"), "`GET /api/v1/jobs`"),
        (action("jobs cancel", 12), "`POST /api/v1/jobs/12/cancel`"),
        (action("tasks resume", all=True), "`POST /api/v1/tasks/resume`"),
        (action("tasks resume", 7), "`POST /api/v1/tasks/7/resume`"),
        (action("tasks show", "https://a.example/"), "`GET /api/v1/tasks/by-url`"),
        (action("parsers rollout", "NAME", "VERSION"), "`POST /api/v1/parsers/{name}/rollout`"),
        (action("keys create", "NAME", scope="admin"), "`POST /api/v1/keys`"),
        (Option("allow_private"), "`allow_private`"),
        (action("doctor"), "`forager doctor` on the server"),
    ],
)
def test_an_action_as_a_call(part: Action | Option, call: str) -> None:
    assert render(Hint("{} helps.", part), as_call) == f"{call} helps."


def test_an_action_as_a_command() -> None:
    shown = Hint(
        "{}: {} or {}", "a {} b", action("keys create", "my key", scope="admin"), Option("no_x")
    )
    assert str(shown) == "a {} b: `forager keys create 'my key' --scope admin` or --no-x"


# their texts are for people at a terminal
CLI_ONLY = ("cli", "doctor", "web", "demo", "settings", "library.py", "index")


def test_services_name_actions_as_data() -> None:
    folder = Path(forager.__path__[0])
    for path in folder.rglob("*.py"):
        text = path.read_text()
        if "action(" not in text and "hint=" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if _is_action(node):
                assert ast.literal_eval(node.args[0]) in forms().keys() | LOCAL, path
            if path.relative_to(folder).parts[0] in CLI_ONLY or not isinstance(node, ast.Call):
                continue
            for keyword in node.keywords:
                if keyword.arg == "hint" and isinstance(
                    keyword.value, ast.Constant | ast.JoinedStr
                ):
                    hint = ast.unparse(keyword.value)
                    assert not re.search(r"forager [a-z]|--[a-z]", hint), f"{path}: {hint}"


def _is_action(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "action"
        and isinstance(node.args[0], ast.Constant)
    )


async def test_problems_name_calls(api: Api) -> None:
    missing = await api.get("/api/v1/jobs/0199a5c2-8a00-7000-8000-000000000000")
    assert missing.json["fix"] == "`GET /api/v1/jobs` lists jobs."
    bulk = {"action": "pause", "ids": ["0199a5c2-8a00-7000-8000-000000000000"]}
    [item] = (await api.post("/api/v1/jobs/bulk", bulk)).json["items"]
    assert item["problem"]["fix"] == missing.json["fix"]
    added = await api.post("/api/v1/tasks", {"items": [{"url": "https://shop.example.org/a"}]})
    task = added.json["tasks"][0]["id"]
    held = (await api.post(f"/api/v1/tasks/{task}/pause")).json
    assert f"`POST /api/v1/tasks/{task}/resume`" in held["why"]
