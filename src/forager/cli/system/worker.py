"""`forager worker`: run jobs and tasks until stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from forager.cli.options import AsJson, Capacity, flags_of, option
from forager.cli.output import counted, note, say, show_json
from forager.cli.running import CommandServices, run_until_stopped, with_services
from forager.clock import wait_for_event
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from forager.db.database import Database
    from forager.jobs.job import Job
    from forager.processes.started import StartedProcess
    from forager.services.service import Service
    from forager.settings import Settings
    from forager.tasks.task import RecoveredTask


# Jobs start before everything else: what the rest imports and starts takes two processor seconds,
# which would delay the first request of a crawl.
JOBS_FIRST = 0.5


class WorkerPart(Protocol):
    """A part of a worker that runs until it is stopped."""

    def stop(self) -> None:
        """Ask it to end; `run` returns when its work is given back."""

    async def run(self) -> None:
        """Work until `stop` is called."""


@dataclass(frozen=True, slots=True)
class StartedLater:
    """A part that lets the first jobs start before it."""

    part: WorkerPart

    def stop(self) -> None:
        self.part.stop()

    async def run(self) -> None:
        await asyncio.sleep(JOBS_FIRST)
        await self.part.run()


def worker(
    context: typer.Context,
    capacity: Capacity = None,
    jobs: bool = option("Run crawls and other jobs.", "--jobs/--no-jobs", default=True),
    tasks: bool = option("Download and parse products.", "--tasks/--no-tasks", default=True),
    region: str | None = option(
        "Region of this worker, which also runs work assigned to that region.",
        metavar="NAME",
        show_default="setting",
    ),
    celery: bool | None = option(
        "Receive tasks from the broker, or poll the database.",
        "--celery/--no-celery",
        show_default="FORAGER_DISPATCH",
    ),
    stages: str | None = option(
        "Stages of tasks that this worker runs.", metavar="both|download|parse", show_default="both"
    ),
    render: bool | None = option(
        "Render pages in a browser (an error without one), or leave that to other workers.",
        "--render/--no-render",
        show_default="if there is a browser",
    ),
) -> None:
    """Run jobs and tasks. Ctrl-C or SIGTERM lets them commit; Ctrl-C twice stops at once."""
    if not (jobs or tasks):
        raise InvalidInput("there is nothing left to do with --no-jobs and --no-tasks")
    settings = flags_of(context).load(
        quiet=False,
        worker_capacity=capacity,
        region=region,
        dispatch={True: "celery", False: "postgres", None: None}[celery],
        task_stages=stages,
        browser="none" if render is False else None,
    )
    if render:
        from forager.render.finding import browser_path

        browser_path(settings)
    spare = flags_of(context).spare_runner
    asyncio.run(run_worker(settings, name="worker", jobs=jobs, tasks=tasks, spare=spare))


async def run_worker(
    settings: Settings,
    *,
    name: str,
    jobs: bool = True,
    tasks: bool = True,
    api: bool = False,
    spare: StartedProcess | None = None,
) -> None:
    """Work until stopped, with the `api` in another process beside the work.

    `spare`: a runner for the first jobs.
    """
    from forager.db.database import open_database
    from forager.logs import get_logger

    log = get_logger(name)
    async with open_database(
        settings, name=f"forager {name}", max_size=12, linger=False
    ) as database:
        parts = _parts(database, settings, jobs=jobs, tasks=tasks, api=api, spare=spare)

        def stop() -> None:
            log.info("stopping: work is committed and given back; Ctrl-C again stops at once")
            stop_parts()

        def stop_parts() -> None:
            for part in parts:
                part.stop()

        if sys.stderr is not None and sys.stderr.isatty():
            note(welcome(settings, name))
        after = JOBS_FIRST if jobs else 0.0
        async with _background_services(database, settings, name, after=after, on_end=stop_parts):
            grace = settings.shutdown_grace
            await run_until_stopped(_run_together(parts), stop, grace=grace)


@asynccontextmanager
async def _background_services(
    database: Database,
    settings: Settings,
    command: str,
    *,
    after: float,
    on_end: Callable[[], None],
) -> AsyncIterator[None]:
    """Run the background services from so many seconds later to the end of the block.

    If they cannot be started, `on_end` is called to end the block, which then raises their error.
    """
    ending = asyncio.Event()

    async def run() -> None:
        await wait_for_event(ending, after)
        if not ending.is_set():
            from forager.background import background_services

            async with background_services(database, settings, command=command):
                await ending.wait()

    running = asyncio.ensure_future(run())
    running.add_done_callback(lambda _: on_end())
    try:
        yield
    finally:
        ending.set()
        await running


def _parts(
    database: Database,
    settings: Settings,
    *,
    jobs: bool,
    tasks: bool,
    api: bool,
    spare: StartedProcess | None,
) -> list[WorkerPart]:
    from forager.jobs.supervisor import Supervisor
    from forager.render.finding import find_browser
    from forager.settings import Dispatch
    from forager.tasks.workers.supervisor import TaskSupervisor

    parts: list[WorkerPart] = []
    if jobs:
        renders = find_browser(settings).path is not None
        parts.append(Supervisor(database, settings, renders=renders, spare=spare))
    if tasks:
        by_celery = settings.dispatch is Dispatch.CELERY
        program = "forager.dispatch" if by_celery else "forager.tasks"
        task_supervisor = TaskSupervisor(database, settings, program)
        parts.append(StartedLater(task_supervisor) if jobs else task_supervisor)
    if api:
        from forager.cli.system.api_process import ApiPart

        parts.append(ApiPart(database, settings))
    return parts


async def _run_together(parts: Sequence[WorkerPart]) -> None:
    """Run all parts to their end. If one fails, the others are stopped first."""
    running = [asyncio.ensure_future(part.run()) for part in parts]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
        for part in parts:
            part.stop()
        await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def welcome(settings: Settings, name: str) -> str:
    where = "the configured PostgreSQL" if settings.database_url else f"{settings.home}"
    region = f", for the region {settings.region} too" if settings.region else ""
    return (
        f"forager {name}: {counted(settings.worker_capacity, 'job')} at a time, data in {where}"
        f"{region}.\n"
        "`forager jobs list` shows the jobs. Ctrl-C stops."
    )


RECOVERED_COLUMNS = ("id", "status", "retry_count", "max_retries", "runner_losses")

Once = Annotated[bool, typer.Option("--once", help="Run once and exit.")]


def scheduler(context: typer.Context, once: Once = False, as_json: AsJson = False) -> None:
    """Dispatch due tasks to the workers. `forager up` does this too; several may run."""
    from forager.tasks.scheduler import Scheduler

    if not once:
        return _run_services(context, "scheduler", scheduler_services)
    tick = with_services(
        context, lambda services: Scheduler(services.database, services.settings).run_once()
    )
    if as_json:
        return show_json(tick)
    if not tick.led:
        return say("another scheduler is running")
    return say(f"{counted(tick.woken, 'task')} became due, {tick.queued} handed to the workers")


def watchdog(context: typer.Context, once: Once = False, as_json: AsJson = False) -> None:
    """Recover the jobs and tasks of workers that died. Every worker does this too."""
    if not once:
        return _run_services(context, "watchdog", _watching)
    jobs, tasks = with_services(context, _recover)
    if as_json:
        shown = [{name: getattr(job, name) for name in RECOVERED_COLUMNS} for job in jobs]
        return show_json({"items": shown, "next_cursor": None, "tasks": tasks})
    for job in jobs:
        say(f"{job.id} is {job.status}, retry {job.retry_count} of {job.max_retries}")
    for task in tasks:
        say(f"task {task.id} is {task.status}, retry {task.retry_count} of {task.max_retries}")
    if not jobs and not tasks:
        note("No job or task of a dead worker was found.")
    return None


async def _recover(services: CommandServices) -> tuple[list[Job], list[RecoveredTask]]:
    from forager.jobs.watchdog import Watchdog
    from forager.tasks.workers.recovery import TaskRecovery

    both = (services.database, services.settings)
    return await asyncio.gather(Watchdog(*both).check_twice(), TaskRecovery(*both).check_twice())


def scheduler_services(database: Database, settings: Settings, process_id: UUID) -> list[Service]:
    from forager.dispatch.services import dispatch_services
    from forager.tasks.scheduler import Scheduler

    dispatching = dispatch_services(database, settings, process_id)
    return [Scheduler(database, settings).service(), *dispatching]


def _watching(database: Database, settings: Settings, _process_id: UUID) -> list[Service]:
    from forager.jobs.watchdog import Watchdog
    from forager.outbox.recovery import OutboxRecovery
    from forager.tasks.workers.recovery import TaskRecovery

    parts = (Watchdog, TaskRecovery, OutboxRecovery)
    return [part(database, settings).service() for part in parts]


def _run_services(
    context: typer.Context,
    command: str,
    make: Callable[[Database, Settings, UUID], Iterable[Service]],
) -> None:
    """Run services until Ctrl-C or SIGTERM."""
    from forager.db.database import open_database
    from forager.logs import get_logger
    from forager.processes.identity import process_name
    from forager.services.report import identify, run_services

    settings = flags_of(context).load(quiet=False)
    stopping = asyncio.Event()

    async def until_stopped() -> None:
        # logged from here, when signals are handled already
        get_logger(command).info(f"{command} started")
        await stopping.wait()

    async def work() -> None:
        async with open_database(settings, name=f"forager {command}", linger=False) as database:
            identity = identify(command, process_name())
            services = make(database, settings, identity.id)
            async with run_services(database, settings, identity, services):
                grace = settings.shutdown_grace
                await run_until_stopped(until_stopped(), stopping.set, grace=grace)

    asyncio.run(work())
