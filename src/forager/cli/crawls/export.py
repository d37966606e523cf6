"""`forager export`: what a job found, or the pages of a source, for other tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.failures import FAILED, complain
from forager.cli.options import Force, option
from forager.cli.output import (
    STDOUT,
    Steps,
    counted,
    note,
    open_output,
    refuse_terminal,
    silence_stdout,
)
from forager.cli.running import with_database
from forager.crawl.options import ExportFormat
from forager.crawl.settlement import Outcome
from forager.errors import InvalidInput, NotFound
from forager.hints import Hint, action

if TYPE_CHECKING:
    from forager.archive.reader import ExportReport
    from forager.archive.record import Codec
    from forager.crawl.export import Export
    from forager.db.database import Database
    from forager.documents.export import PageExport
    from forager.settings import Settings


class Format(StrEnum):
    """What can be exported: of a job, and of a source."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    WARC = "warc"
    MARKDOWN = "markdown"
    LLMS = "llms"
    LLMS_FULL = "llms-full"


PAGE_FORMATS = (Format.MARKDOWN, Format.LLMS, Format.LLMS_FULL)


def export(
    context: typer.Context,
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB|SOURCE",
            help="Job ID or a unique prefix; for markdown, llms and llms-full also a source.",
        ),
    ],
    format_: Format = option("Output format.", "--format", "-f", default=Format.JSONL),
    output: str = option(
        "Output file; - for standard output. With"
        " --format markdown, a name without .jsonl is a folder.",
        "--output",
        "-o",
        default=STDOUT,
        metavar="FILE",
    ),
    outcome: list[Outcome] | None = option("Only URLs with this outcome (repeatable)."),
    body: bool = option(
        "Add each response body as the server sent it, such as HTML (jsonl, parquet).",
        "--body",
        default=False,
    ),
    generation: int | None = option(
        "Generation of the source.", min=1, max=2**31 - 1, show_default="published"
    ),
    force: Force = False,
) -> None:
    """Export a job: every archived response (warc), or one row per settled URL (jsonl, parquet).

    Or export the pages of a source, or of the generation that a job built, as markdown: a folder of
    files or JSON lines (markdown), a list of links (llms), one text (llms-full). A file appears
    only when it is complete.
    """
    if format_ in PAGE_FORMATS:
        if body or outcome:
            raise InvalidInput(
                "--body is for jsonl and parquet; --outcome is for jsonl, parquet and warc"
            )
        return _export_pages(context, job, format_, output, generation, force=force)
    if generation is not None:
        raise InvalidInput("--generation is for markdown, llms and llms-full")
    return _export_job(context, job, ExportFormat(format_), output, outcome, body, force=force)


def _export_pages(
    context: typer.Context,
    name: str,
    format_: Format,
    output: str,
    number: int | None,
    *,
    force: bool,
) -> None:
    from forager.documents.export import PageFormat, export_folder, export_parts

    async def write(database: Database, settings: Settings) -> int:
        export = await pages_of(database, settings, name, number)
        with Steps("exporting", export.pages) as steps:
            if format_ is Format.MARKDOWN and output != STDOUT and not output.endswith(".jsonl"):
                return await export_folder(
                    database, export, Path(output), replace=force, progress=steps.advance
                )
            with open_output(output, force=force) as file:
                async for part in export_parts(database, export, PageFormat(format_)):
                    file.write(part)
                    steps.advance(1)
                file.flush()
        return export.pages

    try:
        pages = with_database(context, write)
    except BrokenPipeError:
        return silence_stdout()
    return note(f"{counted(pages, 'page')} written to {_place(output)}.")


async def pages_of(
    database: Database, settings: Settings, name: str, number: int | None
) -> PageExport:
    """The pages of a source, or of a job if no source has this name."""
    from forager.documents.export import job_export, open_export
    from forager.documents.sources import get_source
    from forager.jobs.queue import Queue, may_be_job_id

    try:
        await get_source(database, name)
    except NotFound:
        if not may_be_job_id(name):
            raise
    else:
        return await open_export(database, name, number)
    try:
        job_id = await Queue(database, settings).resolve(name)
    except NotFound:
        raise NotFound(
            f"there is no source or job {name}",
            hint=Hint("{} and {} list them.", action("sources list"), action("jobs list")),
        ) from None
    if number is not None:
        raise InvalidInput("--generation is for a source: a job builds one generation")
    return await job_export(database, job_id)


def _export_job(
    context: typer.Context,
    job: str,
    format_: ExportFormat,
    output: str,
    outcome: list[Outcome] | None,
    body: bool,
    *,
    force: bool,
) -> None:
    from forager.crawl.export import Export

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
) -> ExportReport:
    from forager.archive.options import archive_options
    from forager.crawl.export import export_job, export_size
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
    from forager.archive.reader import warc_codec
    from forager.archive.record import Codec

    if format_ is not ExportFormat.WARC or output == STDOUT:
        return Codec.GZIP
    return warc_codec(Path(output).name)


def _place(output: str) -> str:
    return "standard output" if output == STDOUT else output


def _report(exported: ExportReport, output: str) -> None:
    note(f"{counted(exported.written, 'record')} written to {_place(output)}.")
    if exported.missed:
        complain(
            f"{counted(exported.missed, 'response')} could not be read from the archive",
            "`forager archive verify` says what is wrong.",
        )
        raise typer.Exit(FAILED)
