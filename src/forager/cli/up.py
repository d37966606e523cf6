"""`forager up`: everything there is, in one process tree."""

from __future__ import annotations

import typer

from forager.cli.flags import flags_of
from forager.cli.options import Capacity
from forager.cli.running import run
from forager.cli.worker import run_worker


def up(context: typer.Context, capacity: Capacity = None) -> None:
    """Run everything on this machine.

    That is the database, unless one is configured, a worker for jobs and tasks, and the scheduler.
    """
    settings = flags_of(context).load(quiet=False, worker_capacity=capacity)
    run(run_worker(settings, name="up"))
