"""`forager watchdog`: give back the jobs and tasks of workers that died."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.running import run
from forager.cli.services import run_until_signal

if TYPE_CHECKING:
    from forager.jobs.job import Recovered
    from forager.settings import Settings
    from forager.tasks.store.recovery import RecoveredTask


def watchdog(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Look now, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give back the jobs and tasks of workers that died. Every worker does this too."""
    settings = flags_of(context).load(quiet=once)
    if not once:
        run(_keep_watch(settings))
        return
    jobs, tasks = run(_look_now(settings))
    if as_json:
        output.show_json({"items": jobs, "next_cursor": None, "tasks": tasks})
        return
    for found in jobs:
        output.say(
            f"{found.id} is {found.status}, retry {found.retry_count} of {found.max_retries}"
        )
    for task in tasks:
        output.say(
            f"task {task.id} is {task.status}, retry {task.retry_count} of {task.max_retries}"
        )
    if not jobs and not tasks:
        output.note("No job or task of a dead worker was found.")


async def _look_now(settings: Settings) -> tuple[list[Recovered], list[RecoveredTask]]:
    from forager.db.database import open_database
    from forager.jobs.watchdog import Watchdog
    from forager.tasks.workers.recovery import TaskRecovery

    async with open_database(settings, name="forager watchdog") as database:
        return await asyncio.gather(
            Watchdog(database, settings).look_twice(), TaskRecovery(database, settings).look_twice()
        )


async def _keep_watch(settings: Settings) -> None:
    from forager.db.database import open_database
    from forager.jobs.watchdog import Watchdog
    from forager.tasks.workers.recovery import TaskRecovery
    from forager.webhooks.recovery import DeliveryRecovery

    async with open_database(settings, name="forager watchdog") as database:
        services = [
            Watchdog(database, settings).service(),
            TaskRecovery(database, settings).service(),
            DeliveryRecovery(database, settings).service(),
        ]
        await run_until_signal(database, settings, "watchdog", services)
