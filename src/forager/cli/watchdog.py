"""`forager watchdog`: give back the jobs of workers that died."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.running import run
from forager.cli.stopping import run_until_stopped

if TYPE_CHECKING:
    from forager.jobs.job import Recovered
    from forager.settings import Settings


def watchdog(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Look now, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give back the jobs of workers that died. Every worker does this too."""
    settings = flags_of(context).load(quiet=once)
    if not once:
        run(_keep_watch(settings))
        return
    recovered = run(_look_now(settings))
    if as_json:
        output.show_page(recovered, None)
        return
    for job in recovered:
        output.say(f"{job.id} is {job.status}, retry {job.retry_count} of {job.max_retries}")
    if not recovered:
        output.note("No job of a dead worker was found.")


async def _look_now(settings: Settings) -> list[Recovered]:
    from forager.db.database import open_database
    from forager.jobs.watchdog import Watchdog

    async with open_database(settings, name="forager watchdog") as database:
        return await Watchdog(database, settings).look_twice()


async def _keep_watch(settings: Settings) -> None:
    from forager.db.database import open_database
    from forager.jobs.watchdog import Watchdog
    from forager.logs import get_logger

    async with open_database(settings, name="forager watchdog") as database:
        looking = asyncio.ensure_future(Watchdog(database, settings).run())

        async def until_cancelled() -> None:
            # said from here, when signals are heard already
            get_logger("watchdog").info("watchdog started", interval=settings.watchdog_interval)
            await asyncio.wait({looking})
            if not looking.cancelled():
                looking.result()

        def stop() -> None:
            looking.cancel()

        await run_until_stopped(until_cancelled(), stop)
