"""`forager archive`: archived raw responses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from forager.amounts import parse_duration, parse_size
from forager.archive import deletion
from forager.archive.audit import CheckedRecord, audit, repair, sample_references
from forager.archive.options import archive_options
from forager.archive.reader import read_response
from forager.archive.segment import parse_ref
from forager.archive.storage import Storage
from forager.cli.options import AsJson, Limit, Yes, argument, flags_of, option
from forager.cli.output import Steps, note, show_json
from forager.cli.running import (
    CommandContext,
    answers,
    confirm,
    fail_unless,
    lists,
    with_services,
)
from forager.cli.system import archive_views as views
from forager.cli.system.archive_migrate import migrate
from forager.errors import InvalidInput
from forager.jobs.queue import Queue
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
    job_id = await Queue(here.database, here.settings).resolve(job) if job else None
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
def verify(
    context: typer.Context,
    segments: list[str] | None = argument("Only these segments.", metavar="[SEGMENT]..."),
    fix: bool = option("Repair what can be repaired.", "--fix", default=False),
    sample: int | None = option("Read only this many of the referenced records.", min=1),
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Read every record, and compare files, rows and references with each other."""
    if sample is not None:
        if fix or segments:
            raise InvalidInput(
                "--sample covers all segments and cannot be combined with --fix or segment names"
            )
        return _verify_sample(context, sample, as_json=as_json)

    async def check(here: CommandContext) -> views.Audit:
        storage = _storage(here.settings)
        total = len(segments or await storage.list_segments())
        result = views.Audit([])
        with Steps("segments", total, shown=not as_json) as steps:
            async for finding in audit(here.database, storage, segments or ()):
                result.findings.append(finding)
                steps.show(len(result.findings))
        if fix and result.repairable:
            if not as_json:
                views.show_findings(result.repairable)
            confirm(views.repair_question(result.repairable), yes=yes)
            for finding in result.repairable:
                done = await repair(here.database, storage, finding)
                result.repaired[finding.segment] = done
        return result

    result = with_services(context, check)
    if as_json:
        show_json(result.as_json())
    else:
        views.show_audit(result)
    return fail_unless(lambda audited: not audited.failed)(result)


def _verify_sample(context: typer.Context, size: int, *, as_json: bool) -> None:
    async def read(here: CommandContext) -> list[CheckedRecord]:
        checked = []
        with Steps("records", size, shown=not as_json) as steps:
            storage = _storage(here.settings)
            async for record in sample_references(here.database, storage, size):
                checked.append(record)
                steps.show(len(checked))
        return checked

    checked = with_services(context, read)
    if as_json:
        show_json(views.sample_as_json(checked))
    else:
        views.show_sample(checked)
    fail_unless(lambda read: not any(record.problem for record in read))(checked)


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Limits of the archive, instead of those of the settings."""

    older_than: str | None = option("Delete segments last written longer ago than this: 30d.")
    max_size: str | None = option("Delete the oldest segments until this size is left: 10GB.")
    keep_referenced: bool = option(
        "Keep referenced segments, even over a limit.", "--keep-referenced", default=False
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
    orphans: bool = option(
        "Also delete files that are unknown to the database.", "--orphans", default=False
    ),
    dry_run: bool = option("Only show what would be deleted, and why.", "--dry-run", default=False),
    yes: Yes = False,
) -> object:
    """Delete segments that nothing refers to, and those past a limit.

    Without limits, those of the settings apply. Segments of a job that is running are
    never deleted.
    """
    storage = _storage(here.settings)
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
    only_body: bool = option("Print only the body.", "--body", default=False),
    as_json: AsJson = False,
) -> None:
    """Print one archived response: status, headers and body."""
    # works without the database
    storage = _storage(flags_of(context).load())
    response = asyncio.run(read_response(storage, parse_ref(ref)))
    if as_json:
        return show_json(views.response_as_json(response))
    return views.show_response(response, only_body=only_body)


def _storage(settings: Settings) -> Storage:
    return archive_options(settings).open()


app.command()(migrate)
