"""The reference pages, made from the code: `make reference` writes them.

What stands above the marker in each page is written by hand and kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import forager
from forager.cli.main import app
from forager.settings import Settings, env_name
from table_owners import described, tables

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
MARKER = "<!-- made by `make reference` from here on -->"
SHOWN_DEFAULTS = {"home": "the platform's folder for user data"}


def commands(command: Any = None, path: str = "forager") -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups before their members."""
    command = command or typer.main.get_command(app)
    # a group that does something without the name of a member is described by that
    yield path, getattr(command, "default", command)
    for name, member in getattr(command, "commands", {}).items():
        if not member.hidden:
            yield from commands(member, f"{path} {name}")


def cli_page() -> str:
    return "\n\n".join(_section(path, command) for path, command in commands()) + "\n"


def _section(path: str, command: Any) -> str:
    context = typer.Context(command)
    lines = [f"## `{path}`", " ".join((command.help or "").split())]
    if hasattr(command, "commands"):
        if command.params:
            lines.append("Options of every command; they go before its name.")
    else:
        usage = " ".join([path, *command.collect_usage_pieces(context)])
        lines.append(f"    {usage}")
    rows = [_row(parameter) for parameter in command.params if not parameter.hidden]
    if rows:
        lines.append("\n".join(["| argument or option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(line for line in lines if line)


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    return f"| {names} | {_cell(parameter.help or '')}{_default(parameter)} |"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return f" Default: {_cell(parameter.show_default)}."
    value = parameter.default
    if value in (None, False, "", ()) or callable(value) or not parameter.show_default:
        return ""
    return f" Default: `{value}`."


def settings_page() -> str:
    rows = [
        f"| `{name}` | `{env_name(name)}` | {_setting_default(name)} | {_cell(field.description)} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| key | variable | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def _setting_default(name: str) -> str:
    value = Settings.model_fields[name].default
    if name in SHOWN_DEFAULTS:
        return SHOWN_DEFAULTS[name]
    if value in (None, ()):
        return "-"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def tables_page() -> str:
    """Every table with its owner and columns, as the comments in the database describe them."""
    known = described()
    rows = [
        f"| [`{name}`](#{name}) | `{owner}` | {_cell(known[name].comment)} |"
        for name, owner, _ in tables()
    ]
    parts = ["\n".join(["| table | owner | content |", "|---|---|---|", *rows])]
    for name, _, _ in tables():
        columns = [
            f"| `{column}` | {_cell(text)} |" for column, text in known[name].columns.items()
        ]
        parts += [f"## `{name}`", "\n".join(["| column | meaning |", "|---|---|", *columns])]
    return "\n\n".join(parts) + "\n"


# values that cannot have a docstring
VALUES = {
    "ABSENT": "Returned by a parser for a field that the page does not have.",
    "Connection": "A connection of psycopg whose rows are tuples.",
    "FINISHED": "The statuses of a job that has ended.",
    "Outcome": "What a handler returns: `Completed`, `Waiting` or `Stopped`.",
}


def python_page() -> str:
    """Every public name with the first sentence of its docstring."""
    names = sorted(
        set(vars(forager)["__all__"]) - {"__version__"}, key=lambda name: (name.lower(), name)
    )
    rows = [f"| `{name}` | {_cell(VALUES.get(name) or _first_paragraph(name))} |" for name in names]
    return "\n".join(["| name | meaning |", "|---|---|", *rows]) + "\n"


def _first_paragraph(name: str) -> str:
    text = inspect.getdoc(getattr(forager, name))
    assert text, f"forager.{name} has no docstring"
    return text.partition("\n\n")[0]


PAGES = {
    "cli.md": cli_page,
    "python.md": python_page,
    "settings.md": settings_page,
    "tables.md": tables_page,
}


def whole_page(name: str) -> str:
    """The page as it should be: its hand-written part, and what the code says."""
    written, marker, _ = (FOLDER / name).read_text(encoding="utf-8").partition(MARKER)
    assert marker, f"{name} has lost its marker"
    return f"{written}{MARKER}\n\n{PAGES[name]()}"


if __name__ == "__main__":
    for page in PAGES:
        (FOLDER / page).write_text(whole_page(page), encoding="utf-8")
