"""`forager crawl`, `resume` and `demo`: a job in the foreground, with progress."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.amounts import counted
from forager.cli.crawls.crawl_flags import GivenOptions
from forager.cli.crawls.crawl_progress import nothing_was_allowed, show_summary
from forager.cli.failures import FAILED, INTERRUPTED, NOT_ALLOWED, OK
from forager.cli.options import AsJson, JobId, flags_of, grouped, option, switch
from forager.cli.output import note, say, show_json, show_table
from forager.cli.running import CommandServices, StoppedAtOnce, with_services
from forager.demo import PORT
from forager.errors import ForagerError, InvalidInput, NotAllowed, error_text

if TYPE_CHECKING:
    from uuid import UUID

    from forager.cli.crawls.crawl_progress import ProgressDisplay
    from forager.crawl.foreground import Foreground
    from forager.crawl.options import CrawlOptions
    from forager.crawl.reports.report import CrawlReport
    from forager.documents.generation import Generation
    from forager.jobs.job import Job
    from forager.jobs.queue import Queue
    from forager.settings import Settings


# how long a second Ctrl-C waits for the final report
REPORT_SECONDS = 2.0
# the name of an option at the start of a line of an error message
_OPTION = re.compile(r"^(?P<name>\w+)(?:\.\d+)?(?=:| must )", re.MULTILINE)

Urls = Annotated[list[str] | None, typer.Argument(metavar="URL...", help="Start URLs.")]

WaitForEmbeddings = Annotated[
    bool,
    typer.Option(
        "--wait-for-embeddings", help="Exit when the pages can also be searched by meaning."
    ),
]


@grouped
def crawl(
    context: typer.Context,
    urls: Urls = None,
    *,
    file: Path | None = option("Read start URLs from a file, one per line (- for stdin)."),
    options: GivenOptions,
    source: str | None = option("Name of the source.", show_default="the host"),
    priority: int = option("Higher runs first.", default=0),
    detach: bool = switch("Enqueue the crawl for a worker and exit.", "--detach"),
    dry_run: bool = switch("List the first URLs and what robots.txt says, and exit.", "--dry-run"),
    wait_for_embeddings: WaitForEmbeddings = False,
    as_json: AsJson = False,
) -> None:
    """Crawl a site and account for every URL.

    Ctrl-C pauses the crawl; `forager resume` continues it.
    """
    starts = [*(urls or []), *_lines(file)]
    if len(starts) == 1 and re.match(r"/|~|\.\.?(/|$)", starts[0]):
        starts, options["folder"] = [], starts[0]
    if not (starts or options.get("folder") or options.get("repository")):
        raise typer.BadParameter("give at least one, or --file with some", param_hint="URL")
    checked = checked_options({**options, "urls": starts})
    if dry_run:
        return _show_preview(context, checked, as_json=as_json)
    code = with_services(
        context,
        lambda services: _start(
            services,
            checked,
            source=source,
            priority=priority,
            detach=detach,
            embeds=wait_for_embeddings,
        ),
        as_json=as_json,
    )
    raise typer.Exit(code)


def _show_preview(context: typer.Context, options: CrawlOptions, *, as_json: bool) -> None:
    from forager.crawl.preview import preview_crawl

    found = with_services(
        context, lambda services: preview_crawl(services.database, services.settings, options)
    )
    if as_json:
        return show_json(found)
    for problem in found.problems:
        note(problem)
    if found.crawl_delay:
        note(f"robots.txt asks for {found.crawl_delay:g} s between requests")
    rows = [
        (each.via, "fetch" if each.refusal is None else each.refusal, each.url)
        for each in found.urls
    ]
    return show_table("VIA, DECISION, URL", rows)


def checked_options(given: dict[str, Any]) -> CrawlOptions:
    """The options of a crawl; errors name the flags of the command line."""
    from forager.crawl.options import crawl_options

    if folder := given.get("folder"):
        given["folder"] = str(Path(folder).expanduser().absolute())
    try:
        return crawl_options(given)
    except InvalidInput as error:
        raise InvalidInput(_OPTION.sub(_as_flag, error.message), hint=error.hint) from None


def _as_flag(option: re.Match[str]) -> str:
    name = option["name"]
    return "URL" if name == "urls" else f"--{name.replace('_', '-')}"


def resume(
    context: typer.Context,
    job: JobId,
    wait_for_embeddings: WaitForEmbeddings = False,
    as_json: AsJson = False,
) -> None:
    """Resume a paused crawl in the foreground, from its last commit."""
    raise typer.Exit(
        with_services(
            context,
            lambda services: _resume(services, job, embeds=wait_for_embeddings),
            as_json=as_json,
        )
    )


async def _start(
    services: CommandServices,
    options: CrawlOptions,
    *,
    source: str | None,
    priority: int = 0,
    detach: bool = False,
    embeds: bool = False,
) -> int:
    """Enqueue a crawl and watch it to its end; return the exit code."""
    from forager.crawl.reports.report import crawl_report
    from forager.crawl.service import request_crawl
    from forager.jobs.lifecycle import Status

    queue = _queue(services)
    enqueued = await request_crawl(
        queue, options, source=source, priority=priority, max_retries=services.settings.max_retries
    )
    job = enqueued.job
    if not enqueued.created:
        _note_active(job, detach=detach)
    if not detach:
        return await _watch(services, job.id, embeds=embeds)
    show_summary(await crawl_report(services.database, queue, job.id), as_json=services.as_json)
    if not services.as_json and job.status is Status.PENDING:
        say(f"a worker will run it: forager worker · forager jobs show {job.id}")
    return OK


def _queue(services: CommandServices) -> Queue:
    from forager.jobs.kinds import load_kinds
    from forager.jobs.queue import Queue

    load_kinds(services.settings.job_modules)
    return Queue(services.database, services.settings)


def _note_active(job: Job, *, detach: bool) -> None:
    """The source has an active crawl. A paused one would wait for a person: nothing to watch."""
    from forager.jobs.lifecycle import Status

    if job.status is not Status.PAUSED:
        state = "queued" if job.status is Status.PENDING else "being crawled"
        note(f"{job.source_id} is {state} already: job {job.id}")
        if not detach:
            note("showing its progress; the options given now are not applied")
        return
    note(f"{job.source_id} has a crawl that is paused: job {job.id}")
    if not detach:
        raise NotAllowed(
            "no crawl was started: a source can have only one active crawl",
            hint=f"`forager resume {job.id}` resumes it, `forager jobs cancel {job.id}` ends it.",
        )


async def _resume(services: CommandServices, text: str, *, embeds: bool) -> int:
    from forager.jobs.lifecycle import Status

    queue = _queue(services)
    job_id = await queue.resolve(text)
    job = await queue.get(job_id)
    if job.status is Status.FAILED:
        await queue.retry(job_id)
    elif job.status not in (Status.PENDING, Status.PROCESSING):
        await queue.resume(job_id)
    return await _watch(services, job_id, embeds=embeds)


async def _show_losses(services: CommandServices, generation: Generation) -> None:
    """Compare some published pages with their responses."""
    from forager.archive.options import archive_options
    from forager.documents.checks import read_sample

    if not generation.is_complete or generation.is_held_back:
        return
    storage = archive_options(services.settings).open()
    pages = await read_sample(services.database, storage, generation.source_id)
    if not pages.words.total():
        return
    say(f"{counted(pages.read, 'page')} compared with what they show: {pages.summary}")
    for _, page in pages.worst["lost_text"][:3]:
        say(f"  lost: {page}", "yellow")


async def _watch(services: CommandServices, job_id: UUID, *, embeds: bool) -> int:
    from forager.cli.crawls.crawl_progress import ProgressDisplay
    from forager.crawl.foreground import Foreground

    await _note_region(services, job_id)
    settings, spare = _with_readable_logs(services.settings), services.spare_runner
    at_once = False
    with ProgressDisplay(None if spare is None else spare.log_pipe) as progress:
        foreground = Foreground(
            services.database, settings, job_id, progress.show, spare, embeds=embeds
        )
        running = asyncio.ensure_future(foreground.run())
        _pause_on_interrupt(foreground, progress, running)
        try:
            report = await running
        except asyncio.CancelledError:
            at_once = True
            report = await _final_report(services, job_id)
    show_summary(report, as_json=services.as_json, interrupted=at_once)
    if not services.as_json and not at_once and report.generation is not None:
        await _show_losses(services, report.generation)
    return INTERRUPTED if at_once else _exit_code(report)


def _with_readable_logs(settings: Settings) -> Settings:
    """The runner's log lines pass through a pipe, but are read by the person at the terminal."""
    from forager.settings import LogFormat

    if settings.log_format is not LogFormat.AUTO or not sys.stderr.isatty():
        return settings
    return settings.model_copy(update={"log_format": LogFormat.CONSOLE})


async def _note_region(services: CommandServices, job_id: UUID) -> None:
    """Say that a worker in another region must run the crawl, if its domain is assigned there."""
    region = (await services.queue.get(job_id)).region
    if region not in (None, services.settings.region):
        note(
            f"its domain is assigned to the region {region}, so a worker there must run it"
            f" (forager worker --region {region})"
        )


async def _final_report(services: CommandServices, job_id: UUID) -> CrawlReport:
    from forager.crawl.reports.report import crawl_report

    try:
        async with asyncio.timeout(REPORT_SECONDS):
            return await crawl_report(services.database, services.queue, job_id)
    except (ForagerError, TimeoutError):
        raise StoppedAtOnce(
            f"Stopped immediately; the status of job {job_id} is unknown.",
            hint=f"Resume with: forager resume {job_id}",
        ) from None


def _pause_on_interrupt(
    foreground: Foreground, progress: ProgressDisplay, running: asyncio.Future[Any]
) -> None:
    """The first Ctrl-C (or SIGTERM) pauses, the second does not wait for it."""
    loop = asyncio.get_running_loop()
    signals = 0

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            progress.say("pausing; Ctrl-C again stops at once")
            foreground.pause()
        elif signals == 2:
            foreground.stop_at_once()
            # the job may run on another worker, or the database be unreachable: wait for neither
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)


def _exit_code(report: CrawlReport) -> int:
    from forager.jobs.lifecycle import Status

    if report.job.status is Status.COMPLETED:
        return FAILED if report.is_held_back else OK
    if report.job.status is Status.PAUSED:
        return INTERRUPTED
    return NOT_ALLOWED if nothing_was_allowed(report) else FAILED


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(error_text(error), param_hint="--file") from None
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]


SOURCE = "demo"
EXAMPLE = "ledger balance"


def demo(
    context: typer.Context,
    serve: bool = switch("Only serve the site, until Ctrl-C.", "--serve"),
    port: int = option(
        "Port on loopback; a free one if it is taken.", default=PORT, min=0, max=65535
    ),
    as_json: AsJson = False,
) -> None:
    """Crawl the small documentation site bundled with Forager, served on loopback."""
    from forager.crawl.options import crawl_options
    from forager.demo.server import demo_site

    flags_of(context).load()
    with demo_site(port) as url:
        note(f"serving the bundled site at {url}")
        if serve:
            asyncio.run(asyncio.Event().wait())
            return
        options = crawl_options({"urls": [url], "allow_private": True})
        code = with_services(
            context, lambda services: _start(services, options, source=SOURCE), as_json=as_json
        )
    if code == OK and not as_json:
        _show_search(context)
    raise typer.Exit(code)


def _show_search(context: typer.Context) -> None:
    """Search the crawled pages."""
    from forager.cli.crawls.search import find, show_hits
    from forager.documents.operations.reading import SearchFilters

    say(f'\n$ forager search "{EXAMPLE}" --source {SOURCE}', "bold")
    wanted = SearchFilters(source=SOURCE)
    show_hits(with_services(context, lambda services: find(services, EXAMPLE, wanted, limit=3)))
