"""Live progress of a crawl on standard error: rate, pending, time left, errors by kind."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TextIO

from forager.amounts import duration_text
from forager.cli.output import console, counted, say, show_json
from forager.errors import ErrorKind

if TYPE_CHECKING:
    from rich.console import RenderableType

    from forager.crawl.reports.report import CrawlReport
    from forager.documents.generation import Generation


PLAIN_INTERVAL = 10.0


class ProgressDisplay:
    """A few lines that stay in place on a terminal; elsewhere a line now and then."""

    def __init__(self, log_pipe: tuple[int, int] | None = None) -> None:
        """`log_pipe`: the pipe to which a process that was started earlier writes its log."""
        from rich.live import Live

        self._console = console(sys.stderr)
        self._terminal = sys.stderr.isatty()
        self._live = Live(
            console=self._console, transient=True, auto_refresh=False, redirect_stderr=False
        )
        # rich moves the cursor by the height of the bar when it begins to print: if another thread
        # drew the bar meanwhile, parts of the old one would stay
        self._drawing = threading.Lock()
        self._log_lines = redirected_stderr(self._printer, log_pipe)
        self._said = ""
        self._printed = time.monotonic()

    def __enter__(self) -> Self:
        if self._terminal:
            self._log_lines.__enter__()
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            with self._drawing:
                self._live.stop()
            self._log_lines.__exit__(None, None, None)

    def _printer(self, screen: TextIO) -> Callable[[str], None]:
        """The bar goes to the terminal itself; log lines are printed above it."""
        from rich.text import Text

        self._console.file = screen

        def print_line(line: str) -> None:
            with self._drawing:
                self._console.print(Text.from_ansi(line))

        return print_line

    def say(self, text: str) -> None:
        self._said = text
        if not self._terminal:
            self._console.print(text)

    def show(self, report: CrawlReport) -> None:
        if self._terminal:
            with self._drawing:
                self._live.update(self._picture(report), refresh=True)
        elif time.monotonic() - self._printed >= PLAIN_INTERVAL:
            self._printed = time.monotonic()
            self._console.print(_line(report))
            if report.wait is not None:
                self._console.print(report.wait.message)

    def _picture(self, report: CrawlReport) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        settled = sum(report.ledger.settled.values())
        whole = settled + report.ledger.pending
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(whole, 1), completed=settled, width=40),
            Text(f"{report.job.progress_percentage} %"),
        )
        lines: list[RenderableType] = [bar, Text(_line(report))]
        if report.wait is not None:
            lines.append(Text(report.wait.message, style="dim"))
        failed = list(report.ledger.summary()["failed_by_reason"].items())[:6]
        if failed:
            errors = " · ".join(f"{number} {reason}" for reason, number in failed)
            lines.append(Text(errors, style="yellow"))
        if self._said:
            lines.append(Text(self._said, style="bold"))
        return Group(*lines)


def _line(report: CrawlReport) -> str:
    ledger = report.ledger
    parts = [
        report.job.shown_status,
        f"{ledger.pages} pages",
        f"{report.pages_per_second:.1f}/s",
        f"{ledger.pending} pending",
    ]
    if report.seconds_left:
        parts.append(f"about {duration_text(report.seconds_left)} left")
    return " · ".join(parts)


# a process that outlives the command keeps its end of the pipe open
LAST_LINES = 1.0


@contextmanager
def redirected_stderr(
    terminal: Callable[[TextIO], Callable[[str], None]], pipe: tuple[int, int] | None = None
) -> Iterator[None]:
    """Give everything that is written to descriptor 2 to a printer, line by line.

    Processes that are started meanwhile write to the same place, so that their lines are caught
    as well. `terminal` gets the terminal itself, and returns the printer.
    """
    kept = os.dup(2)
    reading, writing = pipe or os.pipe()
    with os.fdopen(kept, "w", encoding="utf-8", errors="replace", closefd=False) as screen:
        thread = threading.Thread(
            target=_pass_on, args=(reading, terminal(screen)), name="log lines", daemon=True
        )
        os.dup2(writing, 2)
        os.close(writing)
        thread.start()
        try:
            yield
        finally:
            screen.flush()
            os.dup2(kept, 2)
            thread.join(LAST_LINES)
    os.close(kept)


def _pass_on(reading: int, show: Callable[[str], None]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            show(line.rstrip("\n"))


COUNTS = ("fetched", "unchanged", "duplicate", "failed", "excluded", "pending")
ROBOTS = ErrorKind.ROBOTS.value


def show_summary(report: CrawlReport, *, as_json: bool, interrupted: bool = False) -> None:
    if as_json:
        show_json(report.as_json())
        return
    job, why = report.job, report.reason
    say(f"{job.shown_status}{': ' + why if why else ''}", "bold")
    rate = f"{report.pages_per_second:.1f} pages/s"
    say(f"job {job.id} · source {job.source_id} · {duration_text(report.seconds)} · {rate}")
    show_ledger(report.ledger.summary())
    if report.generation is not None and report.generation.is_complete:
        _show_changes(report.generation)
    _show_what_to_do(report, interrupted=interrupted)


def show_ledger(ledger: dict[str, Any]) -> None:
    """Print the account of all URLs, with the reasons."""
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
        if remark == "translations":
            total = ledger["discovered"]
            say(f"  note: {number:,} of {total:,} URLs are translations; see --language")
            continue
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
    if generation.note and not generation.is_held_back:
        say(f"warning: {generation.note}", "yellow")


def _show_what_to_do(report: CrawlReport, *, interrupted: bool) -> None:
    from forager.jobs.lifecycle import FINISHED, Status

    job = report.job
    if job.status is Status.PAUSED or (interrupted and job.status not in FINISHED):
        say(f"resume with: forager resume {job.id}")
    if report.is_held_back:
        say(f"publish it anyway: forager sources publish {job.source_id} --force")
    if nothing_was_allowed(report) and ROBOTS in report.ledger.summary()["excluded_by_reason"]:
        say("robots.txt forbids the start page; --ignore-robots crawls it anyway")


def nothing_was_allowed(report: CrawlReport) -> bool:
    """Whether every URL was refused, by the guard or by robots.txt."""
    ledger = report.ledger.summary()
    refusals = {ErrorKind.NOT_ALLOWED.value, ROBOTS}
    reasons = {*ledger["failed_by_reason"], *ledger["excluded_by_reason"]}
    return bool(reasons) and reasons <= refusals and not report.ledger.pages
