"""`forager skill`: instructions for coding agents that use the command line instead of MCP."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import typer

from forager.archive.local import whole_file
from forager.cli.options import option, switch
from forager.errors import InvalidInput, error_text

NAME = "forager"
FILE = "SKILL.md"

app = typer.Typer(no_args_is_help=True, help="Instructions for coding agents (SKILL.md).")


@app.command()
def show() -> None:
    """Print the instructions."""
    typer.echo(_text(), nl=False)


@app.command()
def install(
    folder: Path | None = option("Folder of skills.", show_default="~/.claude/skills"),
    project: bool = switch("Install for this folder only, into .claude/skills.", "--project"),
    force: bool = switch("Replace a file that was changed.", "--force"),
) -> None:
    """Write the instructions into a folder of skills, where an agent finds them."""
    root = folder or (Path() if project else Path.home()) / ".claude" / "skills"
    target = root.expanduser() / NAME / FILE
    text = _text().encode()
    try:
        is_same = target.is_file() and target.read_bytes() == text
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error_text(error)}") from None
    with whole_file(target, overwrite=force or is_same) as file:
        file.write(text)
    typer.echo(f"Installed {target}")


def _text() -> str:
    return (files("forager.cli.system") / FILE).read_text("utf-8")
