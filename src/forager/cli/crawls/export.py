"""`forager export`: URLs and responses of a job, or pages of a source, for other tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from forager.archive.reader import warc_codec
from forager.archive.warc_record import Codec
from forager.cli.failures import FAILED, print_error
from forager.cli.options import Force, option, switch
from forager.cli.output import STDOUT, counted, note, note_written, open_output, refuse_terminal
from forager.cli.running import CommandServices, runs
from forager.cli.steps import Steps
from forager.crawl.results.export import CrawlExport, CrawlExportFormat, export_job, export_size
from forager.crawl.settlement import Outcome
from forager.db.database import Database
from forager.documents.export import (
    PageExport,
    PageFormat,
    export_folder,
    export_parts,
    find_source,
    job_export,
    open_export,
)
from forager.documents.publication import no_such_source
from forager.errors import InvalidInput, NotFound
from forager.extract.markdown.links import LinkStyle
from forager.hints import Hint, action
from forager.jobs.lifecycle import FINISHED
from forager.jobs.queue import Queue, may_be_job_id
from forager.settings import Settings


class ExportedFormat(StrEnum):
    """Formats of a job and of a source."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    WARC = "warc"
    MARKDOWN = "markdown"
    LLMS = "llms"
    LLMS_FULL = "llms-full"


PAGE_FORMATS = (ExportedFormat.MARKDOWN, ExportedFormat.LLMS, ExportedFormat.LLMS_FULL)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options that depend on each other."""

    format_: ExportedFormat = option(
        "Output format.", "--format", "-f", default=ExportedFormat.JSONL
    )
    output: str = option(
        "Output file; - for standard output. With"
        " --format markdown, a name without .jsonl or .parquet is a folder.",
        "--output",
        "-o",
        default=STDOUT,
        metavar="FILE",
    )
    outcome: list[Outcome] | None = option("Only URLs with this outcome (repeatable).")
    body: bool = switch(
        "Add each response body as the server sent it, such as HTML (jsonl, parquet).", "--body"
    )
    generation: int | None = option(
        "Generation of the source.", min=1, max=2**31 - 1, show_default="published"
    )

    links: LinkStyle = option(
        "Links to pages of the same host (markdown, llms-full).", default=LinkStyle.ABSOLUTE
    )

    def value(self) -> ExportOptions:
        if self.format_ not in PAGE_FORMATS:
            self.of_job()
        elif self.body or self.outcome:
            raise InvalidInput(
                "--body is for jsonl and parquet; --outcome is for jsonl, parquet and warc"
            )
        return self

    def of_job(self) -> CrawlExport:
        format_ = CrawlExportFormat(self.format_)
        if self.generation is not None:
            raise InvalidInput("--generation is for markdown, llms and llms-full")
        if self.links is not LinkStyle.ABSOLUTE:
            raise InvalidInput("--links is for markdown and llms-full")
        if self.body and format_ is CrawlExportFormat.WARC:
            raise InvalidInput("--body is for jsonl and parquet; a WARC file holds the responses")
        if format_ is not CrawlExportFormat.JSONL:
            refuse_terminal(self.output, f"a {format_.value} file")
        is_file = format_ is CrawlExportFormat.WARC and self.output != STDOUT
        codec = warc_codec(Path(self.output).name) if is_file else Codec.GZIP
        outcomes = tuple(self.outcome or Outcome)
        return CrawlExport(format=format_, outcomes=outcomes, body=self.body, codec=codec)


@runs
async def export(
    services: CommandServices,
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB|SOURCE",
            help="Job ID or a unique prefix; for markdown, llms and llms-full also a source.",
        ),
    ],
    options: Annotated[ExportOptions, ExportOptions],
    force: Force = False,
) -> None:
    """Export a job: every archived response (warc), or one row per settled URL (jsonl, parquet).

    Or export the pages of a source, or of the generation that a job built, as markdown: a folder of
    files, JSON lines or Parquet (markdown), a list of links (llms), one text (llms-full). A file
    appears only when it is complete.
    """
    if options.format_ in PAGE_FORMATS:
        written = await _write_pages(services, job, options, force)
    else:
        written = await _write_job(services, job, options, force)
    note_written(written, options.output)


async def _write_pages(
    services: CommandServices, name: str, options: ExportOptions, force: bool
) -> str:
    format_, output = PageFormat(options.format_), options.output
    found = await pages_of(services.database, services.settings, name, options.generation)
    export = replace(found, links=options.links)
    if format_ is PageFormat.MARKDOWN and output.endswith(".parquet"):
        format_ = PageFormat.PARQUET
    is_folder = output != STDOUT and not output.endswith(".jsonl")
    with Steps("exporting", export.pages) as steps:
        if format_ is PageFormat.MARKDOWN and is_folder:
            pages = await export_folder(
                services.database, export, Path(output), replace=force, progress=steps.advance
            )
            return counted(pages, "page")
        with open_output(output, force=force) as file:
            async for part in export_parts(services.database, export, format_):
                file.write(part)
                steps.advance(1)
            file.flush()
    return counted(export.pages, "page")


async def pages_of(
    database: Database, settings: Settings, name: str, number: int | None
) -> PageExport:
    """The pages of a source, or of a job if no source has this name."""
    if (source := await find_source(database, name)) is not None:
        return await open_export(database, source, number)
    if not may_be_job_id(name):
        raise no_such_source(name)
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


async def _job_of(services: CommandServices, name: str) -> UUID:
    try:
        return await services.queue.resolve(name)
    except (InvalidInput, NotFound):
        if await find_source(services.database, name) is None:
            raise
    raise InvalidInput(
        f"{name} is a source, and this format exports a job",
        hint=Hint(
            "{} exports its pages; {} lists its jobs.",
            action("export", name, format="markdown"),
            action("jobs list", source=name),
        ),
    )


async def _write_job(
    services: CommandServices, name: str, options: ExportOptions, force: bool
) -> str:
    order = options.of_job()
    job_id = await _job_of(services, name)
    if (await services.queue.get(job_id)).status not in FINISHED:
        note("The job is not finished: only URLs that are settled now are exported.")
    total = await export_size(services.database, job_id, order)
    with open_output(options.output, force=force) as file, Steps("exporting", total) as steps:
        done = await export_job(
            services.database, services.archive, job_id, order, file, steps.advance
        )
    if done.missed:
        print_error(
            f"{counted(done.missed, 'response')} could not be read from the archive",
            "`forager archive verify` shows what is wrong.",
        )
        note(f"{counted(done.written, 'record')} written.")
        raise typer.Exit(FAILED)
    return counted(done.written, "record")
