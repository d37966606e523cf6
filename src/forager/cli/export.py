"""`forager export`: what a job found, as a file for other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.failures import FAILED, complain
from forager.cli.flags import flags_of
from forager.cli.output import console, note, silence_stdout
from forager.cli.running import run
from forager.cli.words import counted
from forager.crawl.options import ExportFormat
from forager.crawl.settlement import Outcome
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from forager.archive.record import Codec
    from forager.crawl.export.export import Export, Exported, Progress
    from forager.settings import Settings

STDOUT = "-"


def export(
    context: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or its beginning.")],
    format_: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="What kind of file.")
    ] = ExportFormat.JSONL,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
    ] = STDOUT,
    outcome: Annotated[
        list[Outcome] | None, typer.Option(help="Only URLs with this outcome; may be repeated.")
    ] = None,
    body: Annotated[
        bool, typer.Option("--body", help="Add the text of each page (jsonl, parquet).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Export a job: every archived response (warc), or one row per settled URL (jsonl, parquet).

    A file appears only when it is complete.
    """
    from forager.crawl.export.export import Export

    settings = flags_of(context).load()
    if body and format_ is ExportFormat.WARC:
        raise InvalidInput("--body is for jsonl and parquet; a WARC file holds the responses")
    _keep_binary_off_terminals(format_, output)
    outcomes = tuple(outcome or Outcome)
    wanted = Export(format=format_, outcomes=outcomes, body=body, codec=_codec(format_, output))
    try:
        exported = run(_export(settings, job, wanted, output, force=force))
    except BrokenPipeError:
        return silence_stdout()
    return _report(exported, output)


async def _export(
    settings: Settings, job: str, wanted: Export, output: str, *, force: bool
) -> Exported:
    from forager.archive.options import archive_options
    from forager.crawl.export.export import export_job, export_size
    from forager.db.database import open_database
    from forager.jobs.lifecycle import Status
    from forager.jobs.queue import Queue

    async with open_database(settings, name="forager cli") as database:
        queue = Queue(database, settings)
        job_id = await queue.resolve(job)
        if (await queue.get(job_id)).status in (Status.PENDING, Status.PROCESSING, Status.PAUSED):
            note("The job is not finished: this is what is settled so far.")
        storage = archive_options(settings).open()
        total = await export_size(database, job_id, wanted)
        with _output(output, force=force) as file, _progress(total) as progress:
            return await export_job(database, storage, job_id, wanted, file, progress)


def _output(output: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    from forager.archive.wholefile import whole_file

    if output == STDOUT:
        return nullcontext(sys.stdout.buffer)
    return whole_file(Path(output), overwrite=force)


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on standard error, if a person is looking."""
    stderr = console(sys.stderr)
    if not stderr.is_terminal:
        yield lambda _: None
        return
    from rich.progress import Progress as Bars

    with Bars(console=stderr, transient=True) as bars:
        bar = bars.add_task("exporting", total=total)
        yield lambda done: bars.advance(bar, done)


def _codec(format_: ExportFormat, output: str) -> Codec | None:
    from forager.archive.export import warc_codec
    from forager.archive.record import Codec

    if format_ is not ExportFormat.WARC or output == STDOUT:
        return Codec.GZIP
    return warc_codec(Path(output).name)


def _keep_binary_off_terminals(format_: ExportFormat, output: str) -> None:
    if output == STDOUT and format_ is not ExportFormat.JSONL and sys.stdout.isatty():
        raise InvalidInput(
            f"a {format_.value} file is nothing for a terminal", hint="Give --output FILE."
        )


def _report(exported: Exported, output: str) -> None:
    place = "standard output" if output == STDOUT else output
    note(f"{counted(exported.written, 'record')} written to {place}.")
    if exported.missed:
        complain(
            f"{counted(exported.missed, 'response')} could not be read from the archive",
            "`forager archive verify` says what is wrong.",
        )
        raise typer.Exit(FAILED)
