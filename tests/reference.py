"""The reference pages, made from the code: `make reference` writes them.

What stands above the marker in each page is written by hand and kept.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from textwrap import dedent
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


# values that cannot have a docstring, and errors
VALUES = {
    "ABSENT": "Returned by a parser for a field that the page does not have.",
    "Connection": "A connection of psycopg whose rows are tuples.",
    # the docstrings of these are the messages of errors without another
    "ForagerError": "An error of Forager, with a `message` and perhaps a `hint`.",
    "GiveUp": "A handler raises it to fail its job: no retry would help.",
    "InvalidInput": "An argument, a setting or a URL is not valid.",
    "NotAllowed": "The state of a job, source or task does not permit the call.",
    "NotFound": "There is no job, page, product or source with this ID or name.",
    "FINISHED": "The statuses of a job that has ended.",
    "Outcome": "What a handler returns: `Completed`, `Waiting` or `Stopped`.",
}


# methods that programs call; the others of these classes are used by Forager itself
METHODS = {
    "Forager": "crawl start_crawl wait report refresh explain search read diff sources publish"
    " roll_back apply export check track products history offers changes events add_alert alerts"
    " delete_alert run close",
    "JobContext": "commit transaction save checkpoint",
    "Queue": "enqueue enqueue_many get resolve list_jobs events counts pending_work pause resume"
    " cancel retry prune",
    "SiteParser": "text texts nodes attribute money amount currency_hints",
    "Supervisor": "run stop",
}


def python_page() -> str:
    """Every public name with the first sentence of its docstring, and the methods of classes."""
    names = sorted(
        set(vars(forager)["__all__"]) - {"__version__"}, key=lambda name: (name.lower(), name)
    )
    rows = [f"| `{name}` | {_cell(VALUES.get(name) or _summary(name))} |" for name in names]
    parts = ["\n".join(["| name | meaning |", "|---|---|", *rows])]
    for name, methods in METHODS.items():
        described = [_method(name, method) for method in methods.split()]
        parts += [f"## `{name}`", _described(getattr(forager, name))]
        parts += ["\n".join(["| method | meaning |", "|---|---|", *described])]
    return "\n\n".join(parts) + "\n"


def _summary(name: str) -> str:
    return _first_paragraph(getattr(forager, name))


def _described(value: type) -> str:
    """A docstring as markdown: what is indented is code."""
    text = inspect.getdoc(value) or ""
    return re.sub(
        r"(?m)^    .*(?:\n+    .*)*", lambda code: f"```python\n{dedent(code[0])}\n```", text
    )


def _method(owner: str, name: str) -> str:
    method = getattr(getattr(forager, owner), name)
    if isinstance(method, property):
        return f"| `{name}` | {_cell(_first_paragraph(method))} |"
    parameters = list(inspect.signature(method).parameters.values())[1:]
    bare = [_without_type(each) for each in parameters]
    shown = str(inspect.Signature(bare))
    return f"| `{name}{shown}` | {_cell(_first_paragraph(method))} |"


def _without_type(parameter: inspect.Parameter) -> inspect.Parameter:
    default = parameter.default
    shown = default.value if isinstance(default, Enum) else default
    return parameter.replace(annotation=inspect.Parameter.empty, default=shown)


def _first_paragraph(value: object) -> str:
    text = inspect.getdoc(value)
    assert text, f"{value} has no docstring"
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
