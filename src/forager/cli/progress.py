"""A job's progress on standard error: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from forager.cli import output

if TYPE_CHECKING:
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
