"""What a crawl has done, as the command line sums it up at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forager.cli.output import say, show_json
from forager.cli.words import counted, duration
from forager.errors import ErrorKind

if TYPE_CHECKING:
    from forager.crawl.report import CrawlReport
    from forager.documents.generation import Generation

COUNTS = ("fetched", "unchanged", "duplicate", "failed", "excluded", "pending")
ROBOTS = ErrorKind.ROBOTS.value


def show_summary(report: CrawlReport, *, as_json: bool, interrupted: bool = False) -> None:
    if as_json:
        show_json(report.as_json())
        return
    _show_end(report)
    _show_ledger(report.ledger.summary())
    if report.generation is not None and report.generation.is_complete:
        _show_changes(report.generation)
    _show_what_to_do(report, interrupted=interrupted)


def _show_end(report: CrawlReport) -> None:
    job = report.job
    why = _why(report)
    say(f"{job.shown_status}{': ' + why if why else ''}", "bold")
    rate = f"{report.pages_per_second:.1f} pages/s"
    say(f"job {job.id} · source {job.source_id} · {duration(report.seconds)} · {rate}")


def _why(report: CrawlReport) -> str | None:
    from forager.jobs.lifecycle import FINISHED

    job = report.job
    if _was_refused(report) and report.generation is not None and report.generation.note:
        return report.generation.note
    # a job that goes on keeps the error of its last run
    return job.stop_reason or (job.error_message if job.status in FINISHED else None)


def _was_refused(report: CrawlReport) -> bool:
    from forager.documents.writer import NOT_PUBLISHED

    return report.job.stop_reason == NOT_PUBLISHED


def _show_ledger(ledger: dict[str, Any]) -> None:
    say(
        f"{counted(ledger['discovered'], 'URL')} discovered = "
        + " + ".join(
            f"{ledger[name]} {name}" for name in COUNTS if ledger[name] or name == "fetched"
        )
    )
    for group in ("failed", "excluded", "duplicate"):
        for reason, number in ledger[f"{group}_by_reason"].items():
            say(f"  {group}: {number} {reason}")
    for reason, number in ledger["rendered_by_reason"].items():
        say(f"  rendered: {number} {reason.replace('_', ' ')}")
    for remark, number in ledger["remarks"].items():
        say(f"  note: {number} {remark.replace('_', ' ')}")


def _show_changes(generation: Generation) -> None:
    counts = {
        "added": generation.added,
        "changed": generation.changed,
        "removed": generation.removed,
        "carried over": generation.carried_over,
    }
    changes = " · ".join(f"{number} {name}" for name, number in counts.items())
    say(f"generation {generation.number}: {counted(generation.pages, 'page')} · {changes}")


def _show_what_to_do(report: CrawlReport, *, interrupted: bool) -> None:
    from forager.jobs.lifecycle import FINISHED, Status

    job = report.job
    if job.status is Status.PAUSED or (interrupted and job.status not in FINISHED):
        say(f"go on with: forager resume {job.id}")
    if _was_refused(report):
        say(f"publish it all the same: forager sources publish {job.source_id} --force")
    if nothing_was_allowed(report) and ROBOTS in report.ledger.summary()["excluded_by_reason"]:
        say("robots.txt forbids the start page; --ignore-robots crawls it all the same")


def nothing_was_allowed(report: CrawlReport) -> bool:
    """Whether every URL was refused, by the guard or by robots.txt."""
    ledger = report.ledger.summary()
    refusals = {ErrorKind.NOT_ALLOWED.value, ROBOTS}
    reasons = {*ledger["failed_by_reason"], *ledger["excluded_by_reason"]}
    return bool(reasons) and reasons <= refusals and not report.ledger.pages
