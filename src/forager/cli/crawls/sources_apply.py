"""`forager sources apply`: sources that are declared in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.options import AsJson, Yes
from forager.cli.output import counted, note, say, show_json
from forager.cli.running import confirm, with_database
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forager.crawl.declared import Applied, Planned
    from forager.db.database import Database
    from forager.settings import Settings

DEFAULT_FILES = ("sources.yaml", "sources.yml", "sources.toml", "forager.toml")
SIGNS = {"create": "+", "change": "~", "crawl": ">", "keep": "="}


def apply(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="YAML, TOML or JSON file.", show_default="sources.yaml, forager.toml"),
    ] = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and exit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create and change sources as a file declares them, and crawl those.

    Applying a file again changes nothing. Sources that are not in it are left as they are.
    """
    from forager.crawl.declared import Action, apply_plan, plan_sources, read_source_file
    from forager.jobs.kinds import load_kinds

    declared = read_source_file(file or _default_file())

    async def ask(database: Database, settings: Settings) -> list[Applied]:
        load_kinds(settings.job_modules)
        planned = await plan_sources(database, settings, declared)
        if not as_json:
            _show(planned)
        todo = sum(each.action is not Action.KEEP for each in planned)
        if dry_run or not todo:
            return []
        confirm(f"Apply to {counted(todo, 'source')}?", yes=yes)
        return await apply_plan(database, settings, planned)

    applied = with_database(context, ask)
    if as_json:
        return show_json(applied)
    for each in applied:
        earlier = " (in progress with earlier options; apply again when it has ended)"
        say(f"{each.source_id}: job {each.job_id}{'' if each.job_is_new else earlier}")
    if applied:
        note("A worker crawls them: forager up, or forager worker.")
    return None


def _default_file() -> Path:
    found = next((path for path in map(Path, DEFAULT_FILES) if path.exists()), None)
    if found is None:
        raise InvalidInput(
            "there is no file of sources here", hint="Name one: forager sources apply FILE"
        )
    return found


def _show(planned: Sequence[Planned]) -> None:
    for each in planned:
        say(f"{SIGNS[each.action]} {each.declared.source_id} ({each.action})", "bold")
        for change in each.changes:
            say(f"    {change}")
