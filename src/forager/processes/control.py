"""The socket between a process and the one that supervises it: JSON lines, in both directions.

The supervisor first sends what all work of the process has in common, then work, renewals of leases
and requests to stop. The process sends ticks (its event loop turns), progress and the end of each
piece of work, and a last message if it ends itself. End of file means to the process that its
supervisor is dead.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson


class StopCause(StrEnum):
    """Causes of a request to stop."""

    PAUSE = "pause"
    SHUTDOWN = "shutdown"
    ORPHANED = "orphaned"
    # the job continues in its own runner, or in a shared one again
    MOVE_OUT = "it needs its own runner"
    MOVE_BACK = "it survived in its own runner"


# --- to the process ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment:
    """Worker, database and settings of a process."""

    worker_id: str
    database_url: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunJob:
    """A job to run; `renewed_at` is the sender's clock before it claimed the lease."""

    job: str
    kind: str
    lease: int
    renewed_at: float
    # no other job runs in this process
    alone: bool = False


@dataclass(frozen=True, slots=True)
class RenewedLeases:
    """Leases were renewed; `at` is the sender's clock before it asked the database."""

    jobs: Sequence[str]
    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Commit and return; without a job, all work and then the process."""

    cause: StopCause
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Continue:
    """A pause was revoked before the job had stopped."""

    job: str


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Cancel a job at once: it has lost its lease or exceeded a limit."""

    job: str


# --- from the process ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """`busy_for`: how long it has been at its oldest piece of work; None if that has no limit.

    `lag` is the delay of its event loop, `backlog` the number of pages that wait for extraction.
    """

    progress: bool = False
    busy_for: float | None = None
    lag: float = 0.0
    backlog: int = 0


@dataclass(frozen=True, slots=True)
class JobProgress:
    """A job has committed."""

    job: str


@dataclass(frozen=True, slots=True)
class JobFinished:
    """A job no longer runs here; with `release`, it was not settled and is given back."""

    job: str
    release: str | None = None


@dataclass(frozen=True, slots=True)
class BlameJob:
    """If the process ends now, this job is the cause; revoked by the next tick."""

    job: str


@dataclass(frozen=True, slots=True)
class Unrenewed:
    """The last message: a lease was not renewed in time, so the process ends itself."""


Command = RunJob | Stop | Continue | CancelJob
Message = (
    Assignment | Command | RenewedLeases | Tick | JobProgress | JobFinished | BlameJob | Unrenewed
)

_TYPES = {
    t.__name__: t
    for t in (
        Assignment, RunJob, RenewedLeases, Stop, Continue, CancelJob,
        Tick, JobProgress, JobFinished, BlameJob, Unrenewed,
    )
}  # fmt: skip


def encode(message: Message) -> bytes:
    return orjson.dumps({"type": type(message).__name__, **_fields(message)}) + b"\n"


def decode(line: bytes) -> Message:
    """A message from its line."""
    fields = orjson.loads(line)
    message_type = _TYPES[fields.pop("type")]
    if message_type is Stop:
        return Stop(StopCause(fields["cause"]), fields["job"])
    return message_type(**fields)


def receive_assignment(control: socket.socket) -> Assignment:
    """Read the first line, and not a byte more: the lease monitor reads the rest."""
    line = b""
    while not line.endswith(b"\n"):
        byte = control.recv(1)
        if not byte:
            raise SystemExit(1)  # the supervisor died before it said what to run
        line += byte
    message = decode(line)
    assert isinstance(message, Assignment)
    return message


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__dataclass_fields__}
