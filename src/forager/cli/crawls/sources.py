"""`forager sources`: generations, differences, schedules, and sources declared in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.checks import Topic, checks_in, run_checks
from forager.cli.operations import commands_of
from forager.cli.options import Yes, argument, switch
from forager.cli.output import Columns, counted, note, on_one_line, say, short_time, show_rows
from forager.cli.reports import reports
from forager.cli.running import CommandServices, answers, confirm
from forager.crawl.declared import (
    AddressProblem,
    AppliedSource,
    DeclaredSource,
    PlannedSource,
    SourceAction,
    apply_plan,
    check_addresses,
    plan_sources,
    read_source_file,
)
from forager.crawl.operations.sources import sources
from forager.crawl.results.completion import CrawlResult, EndedCrawl, crawl_results, wait_for_crawls
from forager.documents import checks
from forager.errors import InvalidInput
from forager.jobs.kinds import load_kinds
from forager.jobs.summary import JobsSummary


def _show_diff(diff: Any) -> None:
    """One line per page."""
    for renamed in diff.renamed:
        say(f"R {renamed.old_url} -> {renamed.new_url}", "cyan")
    for page in diff.added:
        say(f"A {page.url}", "green")
    for page in diff.removed:
        say(f"D {page.url}", "red")
    for page in diff.changed:
        before = f"{page.old_url} -> " if page.old_url else ""
        say(f"C {before}{page.url}", "yellow")
        _show_sections(page)
    for carried in diff.carried_over:
        since = f"failing since {short_time(carried.since)}"
        say(f"K {carried.url} ({carried.reason}, {since}, refresh {carried.times})", "magenta")
    compared = f"generation {diff.old} to {diff.new}"
    if diff.against:
        compared = f"{diff.against} (generation {diff.old}) to {diff.source} ({diff.new})"
    note(
        f"{compared}: {len(diff.added)} added, "
        f"{len(diff.removed)} removed, {len(diff.changed)} changed, {len(diff.renamed)} renamed, "
        f"{len(diff.carried_over)} carried over"
    )
    if diff.truncated:
        note("There are more differences: raise --limit.")


def _show_sections(page: Any) -> None:
    for section in page.sections:
        where = f"#{section.anchor}" if section.anchor else ""
        say(f"  {section.kind}: {on_one_line(section.heading)} {where}".rstrip(), "bold")
        for line in section.diff.splitlines()[2:]:
            say("    " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))


app = commands_of(sources, {"diff": _show_diff})

DEFAULT_FILES = ("sources.yaml", "sources.yml", "sources.toml", "forager.toml")
WORKER_NEEDED = "A worker crawls them: forager up, or forager worker."
ENDED_COLUMNS: Columns = {
    "SOURCE": "source_id",
    "RESULT": lambda ended: (ended.result, "" if ended.result == "published" else "red"),
    "PAGES>": "pages",
    "FAILED URLS>": "failed_urls",
    "JOB": "job_id",
    "REASON~": "reason",
}
SIGNS = {"create": "+", "change": "~", "crawl": ">", "keep": "="}


def _show_applied(applied: list[AppliedSource] | list[EndedCrawl] | list[AddressProblem]) -> None:
    ended = [each for each in applied if isinstance(each, EndedCrawl)]
    if ended:
        show_rows(ENDED_COLUMNS, ended)
        counts = Counter(each.result for each in ended)
        return say(", ".join(f"{count} {result}" for result, count in counts.items()), "bold")
    for each in applied:
        if isinstance(each, AddressProblem):
            say(f"{each.source_id}: {each.problem}", "red")
        if isinstance(each, AppliedSource):
            earlier = " (in progress with earlier options; apply again when it has ended)"
            say(f"{each.source_id}: job {each.job_id}{'' if each.job_is_new else earlier}")
    if any(isinstance(each, AppliedSource) for each in applied):
        note(WORKER_NEEDED)
    return None


def _succeeded(applied: list[AppliedSource] | list[EndedCrawl] | list[AddressProblem]) -> bool:
    return all(
        isinstance(each, AppliedSource)
        or (isinstance(each, EndedCrawl) and each.result is CrawlResult.PUBLISHED)
        for each in applied
    )


@dataclass(frozen=True, slots=True)
class SourceFileOption:
    """The argument that names a file of sources."""

    file: Path | None = argument(
        "YAML, TOML or JSON file.", show_default="sources.yaml, forager.toml"
    )

    def value(self) -> list[DeclaredSource]:
        return read_source_file(self.file or _default_file())


@app.command()
@answers(_show_applied, succeeded=_succeeded)
async def apply(
    services: CommandServices,
    declared: Annotated[list[DeclaredSource], SourceFileOption],
    yes: Yes = False,
    dry_run: bool = switch("Show the plan, request the start URLs, and exit.", "--dry-run"),
    wait: bool = switch("Wait until all are crawled, and report the result of each.", "--wait"),
) -> object:
    """Create or update the sources that a file declares, and crawl them.

    Applying a file again changes nothing. Sources that the file does not list are not changed. With
    --wait, the command fails unless all crawls are published, and with --dry-run, if a start URL
    cannot be crawled.
    """
    load_kinds(services.settings.job_modules)
    planned = await plan_sources(services.database, services.settings, declared)
    if not services.as_json:
        _show(planned)
    todo = sum(each.action is not SourceAction.KEEP for each in planned)
    if dry_run:
        return await check_addresses(services.database, services.settings, planned)
    applied: list[AppliedSource] = []
    if todo:
        confirm(f"Apply to {counted(todo, 'source')}?", yes=yes)
        applied = await apply_plan(services.database, services.settings, planned)
    return await _wait(services, planned, applied) if wait else applied


async def _wait(
    services: CommandServices, planned: Sequence[PlannedSource], applied: Sequence[AppliedSource]
) -> list[EndedCrawl]:
    """Wait for the new crawls, and for those that were in progress already."""
    started = {each.source_id: each.job_id for each in applied}
    jobs = [
        (source_id, job_id)
        for each in planned
        if (job_id := started.get(source_id := each.declared.source_id, each.active_job))
    ]
    if jobs and not services.as_json:
        note(WORKER_NEEDED)
    with services.steps("Crawled", len(jobs)) as steps:

        def show(ended: int, summary: JobsSummary) -> None:
            steps.show(ended, what=f"Crawled ({summary.message})" if summary.message else "Crawled")

        await wait_for_crawls(services.database, [job_id for _, job_id in jobs], show)
    return await crawl_results(services.database, jobs)


def _default_file() -> Path:
    found = next((path for path in map(Path, DEFAULT_FILES) if path.exists()), None)
    if found is None:
        raise InvalidInput(
            "there is no file of sources here", hint="Name one: forager sources apply FILE"
        )
    return found


def _show(planned: Sequence[PlannedSource]) -> None:
    for each in planned:
        say(f"{SIGNS[each.action]} {each.declared.source_id} ({each.action})", "bold")
        for change in each.changes:
            say(f"    {change}")


SourceId = Annotated[
    str, typer.Argument(metavar="SOURCE", help="Name of the source; by default its host.")
]


@app.command()
@reports
async def check(services: CommandServices, source: SourceId) -> object:
    """Compare published pages with their archived responses to find lost content."""
    pages = await checks.read_source(services.database, services.archive, source)
    return await run_checks(checks_in(checks, topic=Topic.SOURCES), pages)
