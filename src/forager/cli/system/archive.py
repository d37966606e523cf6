"""`forager archive`: archived raw responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.amounts import parse_duration, parse_size, size_in_words
from forager.archive import deletion
from forager.archive.audit import audit, repair, sample_references
from forager.archive.migration import Move, Moved, MovedSegments
from forager.archive.options import archive_options, is_same_place, place_name, place_of
from forager.archive.reader import read_response
from forager.archive.segment import parse_ref
from forager.archive.storage import open_storage
from forager.cli.options import AsJson, Limit, Yes, argument, flags_of, option, switch
from forager.cli.output import Item, Steps, counted, note, plain, say, show_json
from forager.cli.running import CommandContext, answers, confirm, lists
from forager.cli.system import archive_views as views
from forager.errors import InvalidInput, NotAllowed
from forager.images.files import image_files_at
from forager.images.migration import ImageMove
from forager.settings import Settings

app = typer.Typer(help="Archived raw responses: list, verify, move, delete.")


@app.command("list")
@lists(views.SEGMENT_COLUMNS)
async def list_all(
    here: CommandContext,
    job: str | None = option("Only segments of this job."),
    limit: Limit = 50,
    cursor: str = option("Return segments after this one.", default=""),
) -> object:
    """List segments, oldest first: size, records, references, age, job."""
    job_id = await here.queue.resolve(job) if job else None
    return await deletion.list_segments(here.database, job_id=job_id, cursor=cursor, limit=limit)


@app.command()
@answers(views.show_segment)
async def show(
    here: CommandContext,
    segment: Annotated[str, typer.Argument(metavar="SEGMENT", help="Name of the segment.")],
) -> object:
    """Show one segment."""
    return await deletion.get_segment(here.database, segment)


@app.command()
@answers(
    lambda found: found.show(),
    document=lambda found: found.as_json(),
    succeeded=lambda found: not found.failed,
)
async def verify(
    here: CommandContext,
    segments: list[str] | None = argument("Only these segments.", metavar="[SEGMENT]..."),
    fix: bool = switch("Repair what can be repaired.", "--fix"),
    sample: int | None = option("Read only this many of the referenced records.", min=1),
    yes: Yes = False,
) -> object:
    """Read every record, and compare files, rows and references with each other."""
    storage = here.archive
    if sample is not None:
        if fix or segments:
            raise InvalidInput(
                "--sample covers all segments and cannot be combined with --fix or segment names"
            )
        with here.steps("records", sample) as steps:
            references = sample_references(here.database, storage, sample)
            return views.Sample(await _collect(references, steps))
    with here.steps("segments", len(segments or await storage.list_segments())) as steps:
        findings = await _collect(audit(here.database, storage, segments or ()), steps)
    result = views.Audit(findings)
    if fix and result.repairable:
        if not here.as_json:
            views.show_findings(result.repairable)
        confirm(views.repair_question(result.repairable), yes=yes)
        for finding in result.repairable:
            done = await repair(here.database, storage, finding)
            result.repaired[finding.segment] = done
    return result


async def _collect(found: AsyncIterator[Item], steps: Steps) -> list[Item]:
    items = []
    async for item in found:
        items.append(item)
        steps.show(len(items))
    return items


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Limits of the archive, instead of those of the settings."""

    older_than: str | None = option("Delete segments last written longer ago than this: 30d.")
    max_size: str | None = option("Delete the oldest segments until this size is left: 10GB.")
    keep_referenced: bool = switch(
        "Keep referenced segments, even over a limit.", "--keep-referenced"
    )

    def value(self) -> dict[str, Any]:
        changes: dict[str, Any] = {"drop_references": not self.keep_referenced}
        if self.older_than is not None or self.max_size is not None:
            age, size = self.older_than, self.max_size
            changes["max_age"] = None if age is None else parse_duration(age)
            changes["max_bytes"] = None if size is None else parse_size(size)
        return changes


@app.command()
@answers(views.show_pruning, document=views.Pruning.as_json)
async def prune(
    here: CommandContext,
    limits: Annotated[dict[str, Any], PolicyOptions],
    orphans: bool = switch("Also delete files that are unknown to the database.", "--orphans"),
    dry_run: bool = switch("Only show what would be deleted, and why.", "--dry-run"),
    yes: Yes = False,
) -> object:
    """Delete segments that nothing refers to, and those past a limit.

    Without limits, those of the settings apply. Segments of a job that is running are
    never deleted.
    """
    storage = here.archive
    policy = replace(archive_options(here.settings).policy, **limits)
    pruning = views.Pruning(await deletion.plan_prune(here.database, policy))
    if orphans:
        pruning.orphans = await deletion.find_orphans(here.database, storage)
    if dry_run:
        return pruning
    if pruning.orphans:
        # they may belong to a restored backup, or to another database that shares the storage
        confirm(views.orphan_question(pruning.orphans), yes=yes)
    if pruning.losses:
        if not yes:
            views.show_deletions(pruning.plan.delete, note)
        confirm(views.loss_question(pruning.losses), yes=yes)
    pruning.done = await deletion.prune(here.database, storage, pruning.plan.delete)
    for orphan in pruning.orphans:
        await storage.delete(orphan.name)
    return pruning


@app.command()
def read(
    context: typer.Context,
    ref: Annotated[str, typer.Argument(metavar="REF", help="Reference: SEGMENT:OFFSET:LENGTH.")],
    only_body: bool = switch("Print only the body.", "--body"),
    as_json: AsJson = False,
) -> None:
    """Print one archived response: status, headers and body."""
    # works without the database
    storage = archive_options(flags_of(context).load()).open()
    response = asyncio.run(read_response(storage, parse_ref(ref)))
    if as_json:
        return show_json(views.response_as_json(response))
    return views.show_response(response, only_body=only_body)


SHOWN = 20


@dataclass(frozen=True, slots=True)
class Route:
    """From where to where; `arrived` if the settings name the new place already."""

    source: str | Path
    target: str | Path
    name: str
    arrived: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """What a run did."""

    route: Route
    pages: MovedSegments
    images: Moved
    deleted: int | None

    @property
    def missing(self) -> list[str]:
        return [*self.pages.missing, *self.images.missing]

    @property
    def complete(self) -> bool:
        return self.route.arrived and self.pages.complete and not self.images.missing

    def as_json(self) -> dict[str, Any]:
        return {
            "from": str(self.route.source),
            "to": str(self.route.target),
            "complete": self.complete,
            "segments": plain(self.pages),
            "images": plain(self.images),
            "deleted": self.deleted,
        }


def route_of(settings: Settings, to: str) -> Route:
    """Refused where both ends are one place: a source that is deleted would be the only copy."""
    options = archive_options(settings)
    target = place_of(to, settings)
    name = place_name(target)
    if not is_same_place(target, options.place):
        return Route(options.place, target, name, arrived=False)
    if options.old_place is None or is_same_place(options.old_place, target):
        raise InvalidInput(
            f"the archive is at {target} already",
            hint="Set archive_old_url to the place where it was before.",
        )
    return Route(options.old_place, target, name, arrived=True)


def _show_migration(done: Migration) -> None:
    for name in done.missing[:SHOWN]:
        say(f"{name}: rows refer to it, and it is in neither place", "red")
    pages, images = done.pages, done.images
    say(
        f"{counted(pages.copied, 'segment')} ({size_in_words(pages.bytes)}) and"
        f" {counted(images.copied, 'image')} ({size_in_words(images.bytes)}) copied to"
        f" {done.route.target}; {pages.found + images.found} were there already."
    )
    if done.deleted is not None:
        say(f"{counted(done.deleted, 'file')} deleted from {done.route.source}.")
    if pages.waiting:
        note(f"{counted(pages.waiting, 'segment')} may still be written to: run this again later.")
    if not done.route.arrived:
        note(
            f"To use the copy, set FORAGER_ARCHIVE_URL={done.route.target} and"
            f" FORAGER_ARCHIVE_OLD_URL={done.route.source} for all processes, start them again,"
            " and run this once more."
        )
    elif done.complete:
        note("Everything is there: FORAGER_ARCHIVE_OLD_URL can be unset.")


@app.command()
@answers(
    _show_migration,
    document=Migration.as_json,
    succeeded=lambda migration: not migration.missing,
)
async def migrate(
    here: CommandContext,
    to: Annotated[
        str, typer.Option("--to", help="s3://BUCKET/FOLDER, a folder, or `local`.", metavar="PLACE")
    ],
    delete_source: bool = switch("Delete copied files from the old location.", "--delete-source"),
) -> object:
    """Copy archive and images to another location, and verify each copy.

    Forager keeps working. An interrupted run resumes where it stopped; another run copies what was
    added since. Nothing is deleted without --delete-source.
    """
    route = route_of(here.settings, to)
    if delete_source and not route.arrived:
        raise NotAllowed(
            "responses are still read from the old place alone",
            hint="Set archive_url to the new place and archive_old_url to the old one first.",
        )
    source, target = open_storage(route.source), open_storage(route.target)
    old_images, new_images = image_files_at(route.source), image_files_at(route.target)
    pages = Move(here.database, source, target, route.name)
    await pages.recheck()
    with here.steps("segments", await pages.count()) as steps:
        moved = await pages.run(steps.show)
    images = ImageMove(here.database, old_images, new_images, route.name)
    with here.steps("images", await images.count()) as steps:
        moved_images = await images.run(steps.show)
    deleted = None
    if delete_source:
        deleted = await pages.delete_source() + await images.delete_source()
    return Migration(route, moved, moved_images, deleted)
