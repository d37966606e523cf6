"""`forager scheduler`: hand due tasks to the workers until told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import say, show_json
from forager.cli.running import run
from forager.cli.services import run_until_signal
from forager.cli.words import counted

if TYPE_CHECKING:
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
    from forager.tasks.scheduler import Scheduler

    async with open_database(settings, name="forager scheduler") as database:
        services = [
            Scheduler(database, settings).service(),
            *dispatch_services(database, settings),
        ]
        await run_until_signal(database, settings, "scheduler", services)
