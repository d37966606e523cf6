"""The status of background services, and the processes that run them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

# consecutive failures after which a service counts as failing
FAILING_AFTER = 3


class ServiceState(StrEnum):
    """What a background service is doing."""

    WAITING = "waiting"
    RUNNING = "running"
    BACKING_OFF = "backing_off"
    # a step runs far longer than it may
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """`failures` counts failed runs in a row.

    `is_fault`: the last error was unexpected (a bug or a bad row), not an unavailable dependency.
    """

    name: str
    every: float
    state: ServiceState = ServiceState.WAITING
    failures: int = 0
    is_fault: bool = False
    last_run: datetime | None = None
    last_success: datetime | None = None
    next_run: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    # items that the last run could not handle, each with its reason
    skipped: tuple[str, ...] = ()

    @property
    def is_stuck(self) -> bool:
        """Whether a step runs far longer than it may."""
        return self.state is ServiceState.STUCK

    @property
    def is_failing(self) -> bool:
        """Whether it is stuck, or failed several times in a row."""
        return self.is_stuck or self.failures >= FAILING_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """`process` names it so that others on its machine can see whether it still runs."""

    id: UUID
    command: str
    host: str
    pid: int
    process: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceProcess(ProcessIdentity):
    """A process that runs services; `is_gone`: it has not reported for too long."""

    started_at: datetime
    last_seen: datetime
    is_gone: bool
    services: list[ServiceStatus]
