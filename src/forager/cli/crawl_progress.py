"""Live progress of a crawl on standard error: rate, pending, time left, errors by kind."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

from forager.cli.log_lines import redirected_stderr
from forager.cli.output import console
from forager.cli.words import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from forager.crawl.report import CrawlReport

PLAIN_INTERVAL = 10.0


class CrawlProgress:
    """A few lines that stay in place on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        from rich.live import Live

        self._console = console(sys.stderr)
        self._terminal = sys.stderr.isatty()
        self._live = Live(
            console=self._console, transient=True, refresh_per_second=4, redirect_stderr=False
        )
        self._log_lines = redirected_stderr(self._printer)
        self._said = ""
        self._printed = time.monotonic()

    def __enter__(self) -> Self:
        if self._terminal:
            self._log_lines.__enter__()
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            self._live.stop()
            self._log_lines.__exit__(None, None, None)

    def _printer(self, screen: TextIO) -> Callable[[str], None]:
        """The bar goes to the terminal itself; log lines are printed above it."""
        from rich.text import Text

        self._console.file = screen
        return lambda line: self._console.print(Text.from_ansi(line))

    def say(self, text: str) -> None:
        self._said = text
        if not self._terminal:
            self._console.print(text)

    def show(self, report: CrawlReport) -> None:
        if self._terminal:
            self._live.update(self._picture(report))
        elif time.monotonic() - self._printed >= PLAIN_INTERVAL:
            self._printed = time.monotonic()
            self._console.print(_line(report))
            if report.wait is not None:
                self._console.print(report.wait.words)

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
            lines.append(Text(report.wait.words, style="dim"))
        if errors := _errors(report):
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
        parts.append(f"about {duration(report.seconds_left)} left")
    return " · ".join(parts)


def _errors(report: CrawlReport) -> str:
    failed = report.ledger.summary()["failed_by_reason"]
    return " · ".join(f"{number} {reason}" for reason, number in list(failed.items())[:6])
