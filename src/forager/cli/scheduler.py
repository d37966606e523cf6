"""`forager scheduler`: hand due tasks to the workers until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import say, show_json
from forager.cli.running import run, run_until_stopped
from forager.cli.words import counted

if TYPE_CHECKING:
    from forager.dispatch.services import Service
    from forager.settings import Settings
    from forager.tasks.scheduler import Tick


def scheduler(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Look now, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Hand tasks that are due to the workers. `forager up` does this too; several may run."""
    settings = flags_of(context).load(quiet=once)
    if not once:
        run(_keep_scheduling(settings))
        return
    tick = run(_look_now(settings))
    if as_json:
        show_json(tick)
    elif not tick.led:
        say("another scheduler is at it")
    else:
        say(f"{counted(tick.woken, 'task')} became due, {tick.queued} handed to the workers")


async def _look_now(settings: Settings) -> Tick:
    from forager.db.database import open_database
    from forager.tasks.scheduler import Scheduler

    async with open_database(settings, name="forager scheduler") as database:
        return await Scheduler(database, settings).run_once()


async def _keep_scheduling(settings: Settings) -> None:
    from forager.db.database import open_database
    from forager.dispatch.services import dispatch_services
    from forager.logs import get_logger
    from forager.tasks.scheduler import Scheduler

    async with open_database(settings, name="forager scheduler") as database:
        services = (Scheduler(database, settings), *dispatch_services(database, settings))
        looking = asyncio.ensure_future(_run_all(services))

        async def until_cancelled() -> None:
            # said from here, when signals are heard already
            get_logger("scheduler").info("scheduler started", interval=settings.scheduler_interval)
            await asyncio.wait({looking})
            if not looking.cancelled():
                looking.result()

        def stop() -> None:
            looking.cancel()

        await run_until_stopped(until_cancelled(), stop)


async def _run_all(services: Iterable[Service]) -> None:
    async with asyncio.TaskGroup() as group:
        for service in services:
            group.create_task(service.run())
