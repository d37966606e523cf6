"""`forager export`: what a job found, as a file for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.failures import FAILED, complain
from forager.cli.options import Force, Output
from forager.cli.output import STDOUT, counted, note, open_output, refuse_terminal, silence_stdout
from forager.cli.progress import Steps
from forager.cli.running import with_database
from forager.crawl.options import ExportFormat
from forager.crawl.settlement import Outcome
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.archive.record import Codec
    from forager.crawl.export.export import Export, Exported
    from forager.db.database import Database
    from forager.settings import Settings


def export(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or its beginning.")],
    format_: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="What kind of file.")
    ] = ExportFormat.JSONL,
    output: Output = STDOUT,
    outcome: Annotated[
        list[Outcome] | None, typer.Option(help="Only URLs with this outcome; may be repeated.")
    ] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Add the text of each page (jsonl, parquet).")
    ] = False,
    force: Force = False,
) -> None:
    """Export a job: every archived response (warc), or one row per settled URL (jsonl, parquet).

    A file appears only when it is complete.
    """
    from forager.crawl.export.export import Export

    if body and format_ is ExportFormat.WARC:
        raise InvalidInput("--body is for jsonl and parquet; a WARC file holds the responses")
    if format_ is not ExportFormat.JSONL:
        refuse_terminal(output, f"a {format_.value} file")
    outcomes = tuple(outcome or Outcome)
    wanted = Export(format=format_, outcomes=outcomes, body=body, codec=_codec(format_, output))
    try:
        exported = with_database(
            context, lambda db, settings: _export(db, settings, job, wanted, output, force=force)
        )
    except BrokenPipeError:
        return silence_stdout()
    return _report(exported, output)


async def _export(
    database: Database, settings: Settings, job: str, wanted: Export, output: str, *, force: bool
) -> Exported:
    from forager.archive.options import archive_options
    from forager.crawl.export.export import export_job, export_size
    from forager.jobs.lifecycle import Status
    from forager.jobs.queue import Queue

    queue = Queue(database, settings)
    job_id = await queue.resolve(job)
    if (await queue.get(job_id)).status in (Status.PENDING, Status.PROCESSING, Status.PAUSED):
        note("The job is not finished: this is what is settled so far.")
    storage = archive_options(settings).open()
    total = await export_size(database, job_id, wanted)
    with open_output(output, force=force) as file, Steps("exporting", total) as steps:
        return await export_job(database, storage, job_id, wanted, file, steps.advance)


def _codec(format_: ExportFormat, output: str) -> Codec | None:
    from forager.archive.export import warc_codec
    from forager.archive.record import Codec

    if format_ is not ExportFormat.WARC or output == STDOUT:
        return Codec.GZIP
    return warc_codec(Path(output).name)


def _report(exported: Exported, output: str) -> None:
    place = "standard output" if output == STDOUT else output
    note(f"{counted(exported.written, 'record')} written to {place}.")
    if exported.missed:
        complain(
            f"{counted(exported.missed, 'response')} could not be read from the archive",
            "`forager archive verify` says what is wrong.",
        )
        raise typer.Exit(FAILED)
