"""`forager scheduler` and `forager watchdog`: background services as processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import note, say, show_json
from forager.cli.running import run, run_until_stopped, with_database
from forager.cli.words import counted

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.jobs.job import Recovered
    from forager.services.service import Service
    from forager.settings import Settings
    from forager.tasks.store.recovery import RecoveredTask

Once = Annotated[bool, typer.Option("--once", help="Run once and exit.")]


def scheduler(context: typer.Context, once: Once = False, as_json: AsJson = False) -> None:
    """Dispatch due tasks to the workers. `forager up` does this too; several may run."""
    from forager.tasks.scheduler import Scheduler

    if not once:
        return _run_services(context, "scheduler", _scheduling)
    tick = with_database(context, lambda db, settings: Scheduler(db, settings).run_once())
    if as_json:
        return show_json(tick)
    if not tick.led:
        return say("another scheduler is running")
    return say(f"{counted(tick.woken, 'task')} became due, {tick.queued} handed to the workers")


def watchdog(context: typer.Context, once: Once = False, as_json: AsJson = False) -> None:
    """Recover the jobs and tasks of workers that died. Every worker does this too."""
    if not once:
        return _run_services(context, "watchdog", _watching)
    jobs, tasks = with_database(context, _recover)
    if as_json:
        return show_json({"items": jobs, "next_cursor": None, "tasks": tasks})
    for job in jobs:
        say(f"{job.id} is {job.status}, retry {job.retry_count} of {job.max_retries}")
    for task in tasks:
        say(f"task {task.id} is {task.status}, retry {task.retry_count} of {task.max_retries}")
    if not jobs and not tasks:
        note("No job or task of a dead worker was found.")
    return None


async def _recover(
    database: Database, settings: Settings
) -> tuple[list[Recovered], list[RecoveredTask]]:
    from forager.jobs.watchdog import Watchdog
    from forager.tasks.workers.recovery import TaskRecovery

    return await asyncio.gather(
        Watchdog(database, settings).look_twice(), TaskRecovery(database, settings).look_twice()
    )


def _scheduling(database: Database, settings: Settings) -> list[Service]:
    from forager.dispatch.services import dispatch_services
    from forager.tasks.scheduler import Scheduler

    return [Scheduler(database, settings).service(), *dispatch_services(database, settings)]


def _watching(database: Database, settings: Settings) -> list[Service]:
    from forager.jobs.watchdog import Watchdog
    from forager.outbox.recovery import OutboxRecovery
    from forager.tasks.workers.recovery import TaskRecovery

    parts = (Watchdog, TaskRecovery, OutboxRecovery)
    return [part(database, settings).service() for part in parts]


def _run_services(
    context: typer.Context, command: str, make: Callable[[Database, Settings], Iterable[Service]]
) -> None:
    """Run services until Ctrl-C or SIGTERM."""
    from forager.db.database import open_database

    settings = flags_of(context).load(quiet=False)

    async def work() -> None:
        async with open_database(settings, name=f"forager {command}", linger=False) as database:
            await _run_until_signal(database, settings, command, make(database, settings))

    run(work())


async def _run_until_signal(
    database: Database, settings: Settings, command: str, services: Iterable[Service]
) -> None:
    from forager.logs import get_logger
    from forager.processes.identity import process_name
    from forager.services.report import identify, run_services

    stopping = asyncio.Event()

    async def until_stopped() -> None:
        # logged from here, when signals are handled already
        get_logger(command).info(f"{command} started")
        await stopping.wait()

    async with run_services(database, settings, identify(command, process_name()), services):
        await run_until_stopped(until_stopped(), stopping.set)
