"""`forager sources`: generations, differences, schedules, and sources declared in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.crawls import source_views as views
from forager.cli.options import Cursor, Limit, Yes, argument, option, switch
from forager.cli.output import counted, fields_of, note, say
from forager.cli.running import CommandContext, answers, confirm, lists
from forager.crawl.declared import (
    Action,
    Applied,
    DeclaredSource,
    Planned,
    apply_plan,
    plan_sources,
    read_source_file,
)
from forager.documents import publication, sources
from forager.documents.check import check_source
from forager.documents.cleanup import DocumentCleanup
from forager.documents.diff import diff_generations
from forager.documents.generation import Schedule, parse_cron, parse_every
from forager.documents.page import DocumentRow
from forager.documents.reader import list_documents
from forager.errors import InvalidInput
from forager.jobs.kinds import load_kinds

app = typer.Typer(
    help="Sources: generations, differences, publishing, refreshing.", no_args_is_help=True
)

DEFAULT_FILES = ("sources.yaml", "sources.yml", "sources.toml", "forager.toml")
SIGNS = {"create": "+", "change": "~", "crawl": ">", "keep": "="}


def _show_applied(applied: list[Applied]) -> None:
    for each in applied:
        earlier = " (in progress with earlier options; apply again when it has ended)"
        say(f"{each.source_id}: job {each.job_id}{'' if each.job_is_new else earlier}")
    if applied:
        note("A worker crawls them: forager up, or forager worker.")


@dataclass(frozen=True, slots=True)
class SourceFile:
    file: Path | None = argument(
        "YAML, TOML or JSON file.", show_default="sources.yaml, forager.toml"
    )

    def value(self) -> list[DeclaredSource]:
        return read_source_file(self.file or _default_file())


@app.command()
@answers(_show_applied)
async def apply(
    here: CommandContext,
    declared: Annotated[list[DeclaredSource], SourceFile],
    yes: Yes = False,
    dry_run: bool = switch("Show the plan and exit.", "--dry-run"),
) -> object:
    """Create or update the sources that a file declares, and crawl them.

    Applying a file again changes nothing. Sources that the file does not list are not changed.
    """
    load_kinds(here.settings.job_modules)
    planned = await plan_sources(here.database, here.settings, declared)
    if not here.as_json:
        _show(planned)
    todo = sum(each.action is not Action.KEEP for each in planned)
    if dry_run or not todo:
        return []
    confirm(f"Apply to {counted(todo, 'source')}?", yes=yes)
    return await apply_plan(here.database, here.settings, planned)


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


SourceId = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Name of the source; by default its host.")
]
Number = Annotated[
    int | None,
    typer.Argument(metavar="[GENERATION]", min=1, max=2**31 - 1, help="Number of the generation."),
]


def _listed(row: DocumentRow) -> dict[str, Any]:
    about = fields_of(row, "url", "path", "title", "language", "source_id")
    return {**about, "content_hash": row.content_hash.hex(), "fetched_at": row.fetched_at}


@app.command("list")
@lists(views.SOURCE_COLUMNS, none="There are no sources. `forager crawl URL` creates one.")
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List sources with their published generation."""
    return await sources.list_sources(here.database, cursor=cursor, limit=limit)


@app.command()
@answers(views.show_source)
async def show(here: CommandContext, source: SourceId) -> object:
    """Show one source."""
    return await sources.get_source(here.database, source)


@app.command()
@lists(views.PAGE_COLUMNS, document=_listed)
async def pages(
    here: CommandContext,
    source: SourceId,
    path: str = option("Only paths with this prefix.", default=""),
    limit: Limit = 100,
    cursor: Cursor = None,
) -> object:
    """List the published pages of a source by path; a cursor stays in its generation."""
    return await list_documents(here.database, source, path=path, cursor=cursor, limit=limit)


@app.command()
@lists(views.GENERATION_COLUMNS)
async def generations(
    here: CommandContext, source: SourceId, limit: Limit = 20, cursor: Cursor = None
) -> object:
    """List the generations of a source, newest first."""
    return await sources.list_generations(here.database, source, cursor=cursor, limit=limit)


@app.command()
@answers(views.show_diff)
async def diff(
    here: CommandContext,
    source: SourceId,
    old: int | None = argument("Default: the generation NEW is based on.", metavar="[OLD]", min=1),
    new: int | None = argument("Default: the published one.", metavar="[NEW]", min=1),
    sections: bool = switch("Show the changed sections as unified diffs.", "--sections"),
    limit: int = option("Maximum number of pages to show.", default=10_000, min=1, max=1_000_000),
) -> object:
    """Show which pages were added (A), removed (D), changed (C) and renamed (R)."""
    return await diff_generations(
        here.database, source, old, new, with_sections=sections, limit=limit
    )


@app.command()
@answers(views.show_check)
async def check(here: CommandContext, source: SourceId) -> object:
    """Compare published pages with their archived responses to find lost content."""
    return await check_source(here.database, here.archive, source)


@app.command()
@answers(views.show_published)
async def publish(
    here: CommandContext,
    source: SourceId,
    generation: Number = None,
    force: bool = switch("Publish even if the quality gate rejected it.", "--force"),
) -> object:
    """Publish a generation (default: the newest)."""
    return await publication.publish(here.database, source, generation, force=force)


@app.command()
@answers(views.show_published)
async def rollback(here: CommandContext, source: SourceId, generation: Number = None) -> object:
    """Publish an older generation again (default: the one published before)."""
    return await publication.roll_back(here.database, source, generation)


@app.command()
@answers(lambda done: f"deleted {done['source_id']}: {done['removed'].generations} generations")
async def delete(here: CommandContext, source: SourceId, yes: Yes = False) -> object:
    """Delete a source with all its generations. Jobs and archived responses stay."""
    found = await sources.get_source(here.database, source)
    confirm(f"Delete {found.id} with {found.pages} published pages?", yes=yes)
    await sources.delete_source(here.database, source)
    removed = await DocumentCleanup(here.database).delete_abandoned(source)
    return {"source_id": source, "removed": removed}


@app.command()
@answers(
    lambda asked: f"job {asked.job.id}" + ("" if asked.created else " is refreshing it already"),
    document=lambda asked: {"job_id": asked.job.id, "created": asked.created},
)
async def refresh(here: CommandContext, source: SourceId) -> object:
    """Enqueue a crawl of a source with the options of its last crawl."""
    return await sources.refresh(here.database, here.queue, source)


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    every: str | None = option("Refresh interval: 30min, 12h, 1d, 1w.")
    cron: str | None = option("Refresh by a cron expression, in UTC: '30 4 * * *'.")
    off: bool = switch("Turn the schedule off.", "--off")

    def value(self) -> Schedule | None:
        if (self.every is not None) + (self.cron is not None) + self.off > 1:
            raise InvalidInput("give only one of --every, --cron and --off")
        if self.every is not None:
            return parse_every(self.every)
        if self.cron is not None:
            return parse_cron(self.cron)
        return Schedule() if self.off else None


@app.command()
@answers(views.show_schedule)
async def schedule(
    here: CommandContext,
    source: SourceId,
    wanted: Annotated[Schedule | None, ScheduleOptions],
) -> object:
    """Set when a source is refreshed; without options, show it."""
    if wanted is None:
        return await sources.get_source(here.database, source)
    return await sources.set_schedule(here.database, source, wanted)


@app.command("set")
@answers(views.show_source)
async def set_(
    here: CommandContext,
    source: SourceId,
    keep: int | None = option("Number of generations to keep.", min=1, max=1000),
    max_shrink: float | None = option("Maximum drop in pages: 0.2 is 20 %.", min=0, max=1),
    max_failed: float | None = option(
        "Maximum failure rate of fetched URLs, from 0 to 1.", min=0, max=1
    ),
) -> object:
    """Set how many generations are kept, and the limits of the quality gate."""
    return await sources.set_limits(
        here.database, source, keep=keep, max_shrink=max_shrink, max_failed=max_failed
    )
