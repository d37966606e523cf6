"""`forager archive`: the raw responses that were kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from forager.amounts import parse_duration, parse_size
from forager.cli.failures import FAILED
from forager.cli.options import AsJson, Limit, Yes, argument, flags_of, option
from forager.cli.output import Steps, note_more, show_json, show_page
from forager.cli.running import confirm, run, with_database
from forager.cli.system import archive_views as views
from forager.cli.system.archive_migrate import migrate
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.archive.retention import Policy, SegmentRow
    from forager.archive.storage import Storage
    from forager.db.cursor import Page
    from forager.db.database import Database
    from forager.settings import Settings

app = typer.Typer(help="Archived raw responses: list, verify, move, delete.")

Answer = TypeVar("Answer")
Segment = Annotated[str, typer.Argument(metavar="SEGMENT", help="Name of the segment.")]


@dataclass(frozen=True, slots=True)
class Archive:
    """What the commands here work on."""

    settings: Settings
    database: Database
    storage: Storage


@app.command("list")
def list_all(
    context: typer.Context,
    job: str | None = option("Only segments of this job."),
    limit: Limit = 50,
    cursor: str = option("Return segments after this one.", default=""),
    as_json: AsJson = False,
) -> None:
    """List segments, oldest first: size, records, references, age, job."""
    from forager.archive.deletion import list_segments
    from forager.jobs.queue import Queue

    async def ask(archive: Archive) -> Page[SegmentRow]:
        job_id = await Queue(archive.database, archive.settings).resolve(job) if job else None
        return await list_segments(archive.database, job_id=job_id, cursor=cursor, limit=limit)

    found = with_archive(context, ask)
    if as_json:
        return show_page(found.items, found.next_cursor)
    views.show_segments(found.items)
    return note_more(found.next_cursor)


@app.command()
def show(context: typer.Context, segment: Segment, as_json: AsJson = False) -> None:
    """Show one segment."""
    from forager.archive.deletion import get_segment

    row = with_archive(context, lambda archive: get_segment(archive.database, segment))
    if as_json:
        return show_json(row)
    return views.show_segment(row)


@app.command()
def verify(
    context: typer.Context,
    segments: list[str] | None = argument("Only these segments.", metavar="[SEGMENT]..."),
    fix: bool = option("Repair what can be repaired.", "--fix", default=False),
    sample: int | None = option("Read only this many of the referenced records.", min=1),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Read every record, and compare files, rows and references with each other."""
    from forager.archive.audit import audit, repair

    if sample is not None:
        if fix or segments:
            raise InvalidInput(
                "--sample covers all segments and cannot be combined with --fix or segment names"
            )
        return _verify_sample(context, sample, as_json=as_json)

    async def check(archive: Archive) -> views.Audit:
        found = audit(archive.database, archive.storage, segments or ())
        total = len(segments or await archive.storage.list_segments())
        result = views.Audit([])
        with Steps("segments", total, shown=not as_json) as steps:
            async for finding in found:
                result.findings.append(finding)
                steps.show(len(result.findings))
        if fix and result.repairable:
            if not as_json:
                views.show_findings(result.repairable)
            confirm(views.repair_question(result.repairable), yes=yes)
            for finding in result.repairable:
                done = await repair(archive.database, archive.storage, finding)
                result.repaired[finding.segment] = done
        return result

    result = with_archive(context, check)
    if as_json:
        show_json(result.as_json())
    else:
        views.show_audit(result)
    if result.failed:
        raise typer.Exit(FAILED)
    return None


def _verify_sample(context: typer.Context, size: int, *, as_json: bool) -> None:
    from forager.archive.audit import CheckedRecord, sample_references

    async def check(archive: Archive) -> list[CheckedRecord]:
        checked = []
        with Steps("records", size, shown=not as_json) as steps:
            async for record in sample_references(archive.database, archive.storage, size):
                checked.append(record)
                steps.show(len(checked))
        return checked

    checked = with_archive(context, check)
    if as_json:
        show_json(views.sample_as_json(checked))
    else:
        views.show_sample(checked)
    if any(record.problem for record in checked):
        raise typer.Exit(FAILED)


@app.command()
def prune(
    context: typer.Context,
    older_than: str | None = option("Delete segments last written longer ago than this: 30d."),
    max_size: str | None = option("Delete the oldest segments until this size is left: 10GB."),
    keep_referenced: bool = option(
        "Keep referenced segments, even over a limit.", "--keep-referenced", default=False
    ),
    orphans: bool = option(
        "Also delete files that are unknown to the database.", "--orphans", default=False
    ),
    dry_run: bool = option("Only show what would be deleted, and why.", "--dry-run", default=False),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete segments that nothing refers to, and those past a limit.

    Without limits, those of the settings apply. Segments of a job that is running are
    never deleted.
    """
    from forager.archive import deletion
    from forager.archive.deletion import find_orphans

    policy = _policy(context, older_than, max_size, keep_referenced=keep_referenced)

    async def work(archive: Archive) -> views.Pruning:
        pruning = views.Pruning(await deletion.plan_prune(archive.database, policy))
        if orphans:
            pruning.orphans = await find_orphans(archive.database, archive.storage)
        if dry_run:
            return pruning
        if pruning.orphans:
            # after a backup was restored, or where two databases share a place, it is not nobody's
            confirm(views.orphan_question(pruning.orphans), yes=yes)
        if pruning.losses:
            if not as_json:
                views.show_deletions(pruning.plan.delete)
            confirm(views.loss_question(pruning.losses), yes=yes)
        pruning.done = await deletion.prune(archive.database, archive.storage, pruning.plan.delete)
        for orphan in pruning.orphans:
            await archive.storage.delete(orphan.name)
        return pruning

    pruning = with_archive(context, work)
    if as_json:
        return show_json(pruning.as_json())
    return views.show_pruning(pruning)


@app.command()
def read(
    context: typer.Context,
    ref: Annotated[str, typer.Argument(metavar="REF", help="Reference: SEGMENT:OFFSET:LENGTH.")],
    only_body: bool = option("Print only the body.", "--body", default=False),
    as_json: AsJson = False,
) -> None:
    """Print one archived response: status, headers and body."""
    from forager.archive.options import archive_options
    from forager.archive.reader import read_response
    from forager.archive.segment import parse_ref

    # the database is not asked, so that the archive can be read when that cannot
    storage = archive_options(flags_of(context).load()).open()
    response = run(read_response(storage, parse_ref(ref)))
    if as_json:
        return show_json(views.response_as_json(response))
    return views.show_response(response, only_body=only_body)


def with_archive(context: typer.Context, ask: Callable[[Archive], Awaitable[Answer]]) -> Answer:
    from forager.archive.options import archive_options

    return with_database(
        context, lambda db, settings: ask(Archive(settings, db, archive_options(settings).open()))
    )


def _policy(
    context: typer.Context, older_than: str | None, max_size: str | None, *, keep_referenced: bool
) -> Policy:
    from forager.archive.options import archive_options

    policy = archive_options(flags_of(context).load()).policy
    if older_than is not None or max_size is not None:
        policy = replace(
            policy,
            max_age=None if older_than is None else parse_duration(older_than),
            max_bytes=None if max_size is None else parse_size(max_size),
        )
    return replace(policy, drop_references=not keep_referenced)


app.command()(migrate)
