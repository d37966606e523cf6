"""`forager archive`: archived raw responses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.amounts import parse_duration, parse_size, size_text
from forager.archive import checks, deletion
from forager.archive.audit import audit
from forager.archive.migration import MigrationResult, MovedSegments, StorageMove
from forager.archive.options import archive_options, is_same_place, place_name, place_of
from forager.archive.reader import read_response
from forager.archive.segment import parse_ref
from forager.archive.storage import open_storage
from forager.checks import Examination, Topic, checks_in
from forager.cli.options import AsJson, Limit, Yes, argument, flags_of, option, switch
from forager.cli.output import counted, note, plain, say, show_json
from forager.cli.reports import reports, show_finding
from forager.cli.running import CommandServices, answers, confirm, lists
from forager.cli.system import archive_views as views
from forager.errors import InvalidInput, NotAllowed
from forager.images.files import image_files_at
from forager.images.migration import ImageMove
from forager.settings import Settings

app = typer.Typer(help="Archived raw responses: list, verify, move, delete.")


@app.command("list")
@lists(views.SEGMENT_COLUMNS)
async def list_all(
    services: CommandServices,
    job: str | None = option("Only segments of this job."),
    limit: Limit = 50,
    cursor: str = option("Return segments after this one.", default=""),
) -> object:
    """List segments, oldest first: size, records, references, age, job."""
    job_id = await services.queue.resolve(job) if job else None
    return await deletion.list_segments(
        services.database, job_id=job_id, cursor=cursor, limit=limit
    )


@app.command()
@answers(views.show_segment)
async def show(
    services: CommandServices,
    segment: Annotated[str, typer.Argument(metavar="SEGMENT", help="Name of the segment.")],
) -> object:
    """Show one segment."""
    return await deletion.get_segment(services.database, segment)


@app.command()
@reports
async def verify(
    services: CommandServices,
    segments: list[str] | None = argument("Only these segments.", metavar="[SEGMENT]..."),
    fix: bool = switch("Repair what can be repaired.", "--fix"),
    sample: int | None = option("Read only this many of the referenced records.", min=1),
    yes: Yes = False,
) -> object:
    """Read every record, and compare files, rows and references with each other."""
    examination = Examination()
    if sample is not None:
        if fix or segments:
            raise InvalidInput(
                "--sample covers all segments and cannot be combined with --fix or segment names"
            )
        examination.add(await checks.check_archive(services.database, services.settings, sample))
        return examination.report()
    audited = []
    with services.steps(
        "segments", len(segments or await services.archive.list_segments())
    ) as steps:
        async for segment in audit(services.database, services.archive, segments or ()):
            audited.append(segment)
            steps.show(len(audited))
    await examination.run(checks_in(checks, topic=Topic.ARCHIVE), audited)
    repairable = [each for each in audited if each.can_be_repaired]
    if fix and repairable:
        if not yes:
            for finding in examination.report().problems:
                show_finding(finding)
        confirm(views.repair_question(repairable), yes=yes)
        examination.add(await checks.repair_all(services.database, services.archive, repairable))
    return examination.report()


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
    services: CommandServices,
    limits: Annotated[dict[str, Any], PolicyOptions],
    orphans: bool = switch("Also delete files that are unknown to the database.", "--orphans"),
    dry_run: bool = switch("Only show what would be deleted, and why.", "--dry-run"),
    yes: Yes = False,
) -> object:
    """Delete segments that nothing refers to, and those past a limit.

    Without limits, those of the settings apply. Segments of a job that is running are
    never deleted.
    """
    storage = services.archive
    policy = replace(archive_options(services.settings).policy, **limits)
    pruning = views.Pruning(await deletion.plan_prune(services.database, policy))
    if orphans:
        pruning.orphans = await deletion.find_orphans(services.database, storage)
    if dry_run:
        return pruning
    if pruning.orphans:
        # they may belong to a restored backup, or to another database that shares the storage
        confirm(views.orphan_question(pruning.orphans), yes=yes)
    if pruning.losses:
        if not yes:
            views.show_deletions(pruning.plan.delete, note)
        confirm(views.loss_question(pruning.losses), yes=yes)
    pruning.done = await deletion.prune(services.database, storage, pruning.plan.delete)
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
class StorageRoute:
    """From where to where; `arrived` if the settings name the new place already."""

    source: str | Path
    target: str | Path
    name: str
    arrived: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """What a run did."""

    route: StorageRoute
    pages: MovedSegments
    images: MigrationResult
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


def route_of(settings: Settings, to: str) -> StorageRoute:
    """Refused where both ends are one place: a source that is deleted would be the only copy."""
    options = archive_options(settings)
    target = place_of(to, settings)
    name = place_name(target)
    if not is_same_place(target, options.place):
        return StorageRoute(options.place, target, name, arrived=False)
    if options.old_place is None or is_same_place(options.old_place, target):
        raise InvalidInput(
            f"the archive is at {target} already",
            hint="Set archive_old_url to the place where it was before.",
        )
    return StorageRoute(options.old_place, target, name, arrived=True)


def _show_migration(done: Migration) -> None:
    for name in done.missing[:SHOWN]:
        say(f"{name}: rows refer to it, and it is in neither place", "red")
    pages, images = done.pages, done.images
    say(
        f"{counted(pages.copied, 'segment')} ({size_text(pages.bytes)}) and"
        f" {counted(images.copied, 'image')} ({size_text(images.bytes)}) copied to"
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
    _show_migration, document=Migration.as_json, succeeded=lambda migration: not migration.missing
)
async def migrate(
    services: CommandServices,
    to: Annotated[
        str, typer.Option("--to", help="s3://BUCKET/FOLDER, a folder, or `local`.", metavar="PLACE")
    ],
    delete_source: bool = switch("Delete copied files from the old location.", "--delete-source"),
) -> object:
    """Copy archive and images to another location, and verify each copy.

    Forager keeps working. An interrupted run resumes where it stopped; another run copies what was
    added since. Nothing is deleted without --delete-source.
    """
    route = route_of(services.settings, to)
    if delete_source and not route.arrived:
        raise NotAllowed(
            "responses are still read from the old place alone",
            hint="Set archive_url to the new place and archive_old_url to the old one first.",
        )
    source, target = open_storage(route.source), open_storage(route.target)
    old_images, new_images = image_files_at(route.source), image_files_at(route.target)
    pages = StorageMove(services.database, source, target, route.name)
    await pages.recheck()
    with services.steps("segments", await pages.count()) as steps:
        moved = await pages.run(steps.show)
    images = ImageMove(services.database, old_images, new_images, route.name)
    with services.steps("images", await images.count()) as steps:
        moved_images = await images.run(steps.show)
    deleted = None
    if delete_source:
        deleted = await pages.delete_source() + await images.delete_source()
    return Migration(route, moved, moved_images, deleted)
