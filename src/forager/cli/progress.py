"""Progress of long commands on standard error: a bar on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from forager.cli import output
from forager.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress

    from forager.jobs.job import Job


class JobProgress:
    """Begins when it is first shown a job, and leaves no trace when it stops."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        console = output.console(sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=100)

    def show(self, job: Job) -> None:
        self._bar.start()
        description = f"job {job.shown_status:10}"
        self._bar.update(self._task, description=description, completed=job.progress_percentage)

    def stop(self) -> None:
        """To be called before anything else is printed."""
        self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


PLAIN_INTERVAL = 10.0


class Steps:
    """Counts steps of a known total; prints a line every few seconds off a terminal."""

    def __init__(self, what: str, total: int, *, shown: bool = True) -> None:
        self._what = what
        self._total = total
        self._shown = shown
        self._said = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            from rich.progress import Progress

            self._bar = Progress(console=console(sys.stderr), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif self._shown and time.monotonic() - self._said >= PLAIN_INTERVAL:
            self._said = time.monotonic()
            console(sys.stderr).print(f"{self._what}: {done} of {self._total}")
