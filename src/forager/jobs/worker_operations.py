"""Operations on workers, and on the background services of all processes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forager.jobs import workers as service
from forager.operations.models import Limit, Listed, Offset, ResponseModel, cut, listed
from forager.operations.operation import Columns, Context, Group, Scope
from forager.services import status
from forager.services.report import list_service_processes

worker_list = Group(
    "workers", "Workers and background services.", page="Workers", sees=Scope.OPERATE
)


_ABOUT_WORKER = {
    "brake": "Why the worker claims no more jobs at the moment; null: it does.",
    "capacity": "Number of jobs that can run at the same time.",
    "note": "Remark for people.",
    "state": "`running` or `stopping`.",
    "role": "What the worker runs: `jobs` or `tasks`.",
    "version": "Version of Forager that the worker runs.",
}


class Worker(ResponseModel, row=service.Worker, about=_ABOUT_WORKER):
    """A worker process that is, or recently was, active."""

    region: str | None = Field(description="Region whose work it also runs.")
    renders: bool = Field(description="Whether it renders the pages of tasks in a browser.")


_ABOUT_BACKGROUND_SERVICE = {
    "failures": "Failures in a row.",
    "last_run": "When the last run began.",
    "last_success": "When it last succeeded.",
    "next_run": "When the next run is due.",
    "last_error_at": "When it failed last.",
    "skipped": "Items of the last run that failed.",
}


class BackgroundService(
    ResponseModel, row=status.ServiceStatus, hidden=("is_fault",), about=_ABOUT_BACKGROUND_SERVICE
):
    """`failures` counts failed runs in a row; `skipped` names items of the last run that failed."""

    every: float = Field(description="Seconds between two runs.")
    state: Literal["waiting", "running", "backing_off", "stuck"]
    is_failing: bool = Field(description="Whether it failed several times in a row.")


_ABOUT_SERVICE_PROCESS = {
    "command": "The command that started the process.",
    "is_gone": "Whether the process has stopped reporting.",
}


class ServiceProcess(
    ResponseModel,
    row=status.ServiceProcess,
    hidden=("process",),
    about=_ABOUT_SERVICE_PROCESS,
    thing="process",
):
    """A process that runs background services; `is_gone`: it has not reported for too long."""

    services: list[BackgroundService] = Field(description="Background services of the process.")


WORKER_COLUMNS: Columns = {
    "ID": "id", "ROLE": "role", "STATE": "state", "REGION": "region",
    "RENDERS": lambda each: "yes" if each.renders else "", "HOST": "host", "PID>": "pid",
    "SEEN": "last_seen", "NOTE": "note",
}  # fmt: skip
PROCESS_COLUMNS: Columns = {
    "COMMAND": "command", "HOST": "host", "PID>": "pid", "SEEN": "last_seen",
    "SERVICES>": lambda each: len(each.services),
    "FAILING": lambda each: ", ".join(one.name for one in each.services if one.is_failing),
}  # fmt: skip


@worker_list.operation(
    "list",
    "GET /workers",
    columns=WORKER_COLUMNS,
    none="There are no workers. `forager worker` or `forager up` runs one.",
)
async def workers(context: Context, limit: Limit = 100, cursor: Offset = 0) -> Listed[Worker]:
    """List workers that are or recently were active."""
    found = await service.list_workers(context.database, context.settings)
    return listed(cut(found, cursor, limit), Worker.of)


@worker_list.operation("services", "GET /services", columns=PROCESS_COLUMNS)
async def services(
    context: Context, limit: Limit = 100, cursor: Offset = 0
) -> Listed[ServiceProcess]:
    """List background services of all processes, with state, last run and last error."""
    found = await list_service_processes(context.database, context.settings)
    return listed(cut(found, cursor, limit), ServiceProcess.of)
