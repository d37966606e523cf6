"""The list of faults and their weights."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from chaos.faults import database, jobs, machine, processes, services, users
from chaos.world import Hit, World


@dataclass(frozen=True, slots=True)
class Fault:
    """`run` returns None if the fault does not apply."""

    kind: str
    weight: int
    run: Callable[[World], Awaitable[Hit | None]]


FAULTS = (
    Fault("kill supervisor", 5, processes.kill_supervisor),
    Fault("kill runner", 9, processes.kill_runner),
    Fault("kill task worker", 6, processes.kill_task_worker),
    Fault("kill extraction", 5, processes.kill_extractor),
    Fault("kill API", 3, processes.kill_api),
    Fault("kill scheduler", 2, processes.kill_scheduler),
    Fault("freeze", 8, processes.freeze),
    Fault("freeze runner past lease", 3, processes.freeze_runner),
    Fault("freeze supervisor past lease", 3, processes.freeze_supervisor),
    Fault("freeze task worker past lease", 2, processes.freeze_task_worker),
    Fault("block runner", 2, jobs.block_runner),
    Fault("exhaust memory", 2, jobs.exhaust_memory),
    Fault("restart PostgreSQL", 4, database.restart_server),
    Fault("kill PostgreSQL backend", 3, database.kill_backend),
    Fault("terminate sessions", 6, database.terminate_sessions),
    Fault("delay line", 4, database.delay_line),
    Fault("cut line", 5, database.cut_line),
    Fault("half-open line", 4, database.half_open_line),
    Fault("disk full", 4, machine.fill_disk),
    Fault("step clock", 5, machine.step_clock),
    Fault("service raises", 4, services.break_scheduler),
    Fault("pause", 6, users.pause),
    Fault("resume", 4, users.resume),
    Fault("cancel", 2, users.cancel),
    Fault("retry", 2, users.retry),
    Fault("publish", 4, users.publish),
    Fault("roll back", 5, users.roll_back),
)
