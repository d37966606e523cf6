"""Live progress of a crawl on standard error: rate, pending, time left, errors by kind."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

from forager.cli.log_lines import redirected_stderr
from forager.cli.output import console
from forager.cli.words import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from forager.crawl.report import CrawlReport

RECENT = 10.0
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
        self._samples: deque[tuple[float, int]] = deque()
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
        rate = self._recent_rate(report)
        if self._terminal:
            self._live.update(self._picture(report, rate))
        elif time.monotonic() - self._printed >= PLAIN_INTERVAL:
            self._printed = time.monotonic()
            self._console.print(_line(report, rate))

    def _recent_rate(self, report: CrawlReport) -> float:
        """Pages per second of the last moments: the average of hours says little about now."""
        now, done = time.monotonic(), report.ledger.processed
        self._samples.append((now, done))
        while now - self._samples[0][0] > RECENT:
            self._samples.popleft()
        first, before = self._samples[0]
        return (done - before) / (now - first) if now > first else 0.0

    def _picture(self, report: CrawlReport, rate: float) -> RenderableType:
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
        lines: list[RenderableType] = [bar, Text(_line(report, rate))]
        if errors := _errors(report):
            lines.append(Text(errors, style="yellow"))
        if self._said:
            lines.append(Text(self._said, style="bold"))
        return Group(*lines)


def _line(report: CrawlReport, rate: float) -> str:
    ledger = report.ledger
    parts = [
        report.job.shown_status,
        f"{ledger.pages} pages",
        f"{rate:.1f}/s",
        f"{ledger.pending} pending",
    ]
    if rate > 0 and ledger.pending:
        parts.append(f"about {duration(ledger.pending / rate)} left")
    return " · ".join(parts)


def _errors(report: CrawlReport) -> str:
    failed = report.ledger.summary()["failed_by_reason"]
    return " · ".join(f"{number} {reason}" for reason, number in list(failed.items())[:6])
