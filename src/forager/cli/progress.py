"""A job's progress on standard error: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forager.cli import output

if TYPE_CHECKING:
    from forager.jobs.job import Job


@contextmanager
def job_progress() -> Iterator[Callable[[Job], None]]:
    """A function that shows a job each time it is called with it."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    console = output.console(sys.stderr)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("job", total=100, visible=False)

        def show(job: Job) -> None:
            progress.update(
                task,
                description=f"job {job.shown_status:10}",
                completed=job.progress_percentage,
                visible=True,
            )

        yield show
