"""`forager worker`: run jobs until told to stop."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from forager.cli import output
from forager.cli.flags import flags_of
from forager.cli.options import Capacity
from forager.cli.running import run
from forager.cli.stopping import run_until_stopped
from forager.cli.words import counted

if TYPE_CHECKING:
    from forager.settings import Settings


def worker(context: typer.Context, capacity: Capacity = None) -> None:
    """Run jobs. Ctrl-C or SIGTERM lets them commit and gives them back; Ctrl-C twice: at once."""
    settings = flags_of(context).load(quiet=False, worker_capacity=capacity)
    run(run_worker(settings, name="worker"))


async def run_worker(settings: Settings, *, name: str) -> None:
    from forager.background import background_services
    from forager.db.database import open_database
    from forager.jobs.supervisor import Supervisor
    from forager.logs import get_logger

    log = get_logger(name)
    async with open_database(settings, name=f"forager {name}", max_size=8) as database:
        supervisor = Supervisor(database, settings)

        def stop() -> None:
            log.info("stopping: jobs commit and are given back; Ctrl-C again stops at once")
            supervisor.stop()

        if sys.stderr is not None and sys.stderr.isatty():
            output.note(welcome(settings, name))
        async with background_services(database, settings):
            await run_until_stopped(supervisor.run(), stop)


def welcome(settings: Settings, name: str) -> str:
    where = "the configured PostgreSQL" if settings.database_url else f"{settings.home}"
    return (
        f"forager {name}: {counted(settings.worker_capacity, 'job')} at a time, data in {where}.\n"
        "`forager jobs list` shows the jobs. Ctrl-C stops."
    )
