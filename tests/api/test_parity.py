"""Whatever can be done on the command line can be done over HTTP, and the reverse."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import forager
from api.client import Api
from forager.api.app import create_app
from forager.api.commands import CALLS, LOCAL, in_calls
from forager.cli.main import app
from forager.db.database import Database
from forager.settings import Settings

# Whoever types a command knows who it is.
# `forager doctor` examines the services, beside much else
REMOTE = {"GET /me", "GET /services"}


def commands(command: Any, *names: str) -> Iterator[str]:
    """Everything that can be typed, below a group of commands."""
    inner: Any = getattr(command, "commands", {})
    if not inner or command.invoke_without_command:
        yield " ".join(names)
    for name in inner:
        # a hidden one is what the group does by itself
        yield from commands(inner[name], *names, *([] if inner[name].hidden else [name]))


@pytest.fixture
def operations(settings: Settings, database: Database) -> set[str]:
    paths = create_app(settings, database).openapi()["paths"]
    return {
        f"{method.upper()} {path.removeprefix('/api')}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith("/api/")
    }


def test_every_command_has_its_call_or_is_local() -> None:
    typed = set(commands(typer.main.get_command(app)))
    assert typed - CALLS.keys() == LOCAL
    assert CALLS.keys() <= typed


def test_every_call_has_its_command(operations: set[str]) -> None:
    named = {operation for each in CALLS.values() for operation in each}
    assert operations - named == REMOTE
    assert named <= operations


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("`forager jobs list` shows ids.", "`GET /api/jobs` shows ids."),
        ("First: forager jobs cancel 12", "First: `POST /api/jobs/12/cancel`"),
        ("`forager tasks resume --all`", "`POST /api/tasks/resume`"),
        ("`forager tasks resume 7`", "`POST /api/tasks/7/resume`"),
        ("`forager tasks show https://a.example/`", "`GET /api/tasks/by-url`"),
        ("`forager parsers rollout NAME VERSION`", "`POST /api/parsers/{name}/rollout`"),
        ("`forager keys create NAME --scope admin`", "`POST /api/keys`"),
        ("Give --allow-private if so.", "Give `allow_private` if so."),
        ("Give --allow-private (`allow_private`) then.", "Give `allow_private` then."),
        ("Run `forager doctor`.", "Run `forager doctor` on the server."),
        ("Wait a while.", "Wait a while."),
    ],
)
def test_a_hint_in_calls(hint: str, told: str) -> None:
    assert in_calls(hint) == told


# those speak to people alone
SPOKEN = ("cli", "doctor", "web", "demo")


def hints() -> Iterator[str]:
    """Every text in the source that names a command, with something for what is filled in."""
    folder = Path(forager.__path__[0])
    for path in folder.rglob("*.py"):
        if path.relative_to(folder).parts[0] not in SPOKEN:
            for text in _texts(ast.parse(path.read_text())):
                if re.search(r"(`|: )forager [a-z]", text):
                    yield text


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(p.value) if isinstance(p, ast.Constant) else "1" for p in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _texts(inner)


def test_every_hint_of_the_services_can_be_told_in_calls() -> None:
    found = list(hints())
    assert len(found) > 20
    for hint in found:
        for command in re.findall(r"forager ([a-z-]+(?: [a-z-]+)?)", in_calls(hint)):
            assert {command, command.split()[0]} & LOCAL, hint


async def test_problems_name_calls(api: Api) -> None:
    missing = await api.get("/api/jobs/0199a5c2-8a00-7000-8000-000000000000")
    assert missing.json["fix"] == "`GET /api/jobs` shows the jobs there are."
    bulk = {"action": "pause", "ids": ["0199a5c2-8a00-7000-8000-000000000000"]}
    [item] = (await api.post("/api/jobs/bulk", bulk)).json["items"]
    assert item["problem"]["fix"] == missing.json["fix"]
    added = await api.post("/api/tasks", {"items": [{"url": "https://shop.example.org/a"}]})
    task = added.json["tasks"][0]["id"]
    held = (await api.post(f"/api/tasks/{task}/pause")).json
    assert f"`POST /api/tasks/{task}/resume`" in held["why"]
