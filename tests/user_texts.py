"""Every text that a user of Forager reads, with its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import forager
from forager.api.app import create_app
from forager.cli.main import app
from forager.settings import Settings

SOURCE = Path(forager.__path__[0])
ROOT = SOURCE.parents[1]
_TAG = re.compile(r"\{[{%#].*?[}%#]\}|<[^>]*>", re.S)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
# calls whose texts are printed or raised
_SAYS = ("say", "note", "complain", "confirm", "Hint", "Done", "Attention", "Option", "Argument")


def texts() -> Iterator[tuple[str, str]]:
    yield from _command_help(typer.main.get_command(app), "forager")
    yield from _api_texts()
    for path in sorted((SOURCE / "web/templates").glob("*.html")):
        yield f"templates/{path.name}", _TAG.sub(" ", path.read_text())
    for path in sorted(SOURCE.rglob("*.py")):
        for line, text in _messages(ast.parse(path.read_text())):
            yield f"{path.relative_to(SOURCE)}:{line}", text
    for path in [
        ROOT / "README.md",
        ROOT / "docs/index.md",
        *(ROOT / "docs/reference").glob("*.md"),
    ]:
        yield str(path.relative_to(ROOT)), _CODE.sub(" ", path.read_text())


def _command_help(command: Any, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for inner in getattr(command, "commands", {}):
        yield from _command_help(command.commands[inner], f"{name} {inner}")


def _api_texts() -> Iterator[tuple[str, str]]:
    database: Any = None

    def described(node: Any, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, dict):
            for name, value in node.items():
                if name in ("description", "summary") and isinstance(value, str):
                    yield place, value
                else:
                    yield from described(value, f"{place}/{name}")
        elif isinstance(node, list):
            for value in node:
                yield from described(value, place)

    yield from described(create_app(Settings(), database).openapi(), "openapi")


def _messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts of exceptions, hints, notices, printed lines and settings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _strings(node.exc)
        elif isinstance(node, ast.Call) and _name(node.func) in _SAYS:
            yield from _strings(node)
        elif isinstance(node, ast.keyword) and node.arg in ("hint", "description", "help"):
            yield from _strings(node.value)


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.JoinedStr):
            parts = [str(p.value) if isinstance(p, ast.Constant) else "…" for p in each.values]
            yield each.lineno, "".join(parts)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.lineno, each.value
