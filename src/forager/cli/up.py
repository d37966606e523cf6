"""`forager up`: everything there is, in one process tree."""

from __future__ import annotations

from typing import Annotated

import typer

from forager.cli.api import Host, Port
from forager.cli.flags import flags_of
from forager.cli.options import Capacity
from forager.cli.running import run
from forager.cli.serving import ServerPart
from forager.cli.worker import run_worker

Api = Annotated[bool, typer.Option("--api/--no-api", help="Serve the API and the dashboard.")]


def up(
    context: typer.Context,
    capacity: Capacity = None,
    api: Api = True,
    host: Host = None,
    port: Port = None,
) -> None:
    """Run everything on this machine.

    That is the database, unless one is configured, a worker for jobs and tasks, the scheduler, the
    API and the dashboard.
    """
    settings = flags_of(context).load(
        quiet=False, worker_capacity=capacity, api_host=host, api_port=port
    )
    run(run_worker(settings, name="up", more=[ServerPart(settings)] if api else []))
