"""The socket between a process and the one that supervises it: JSON lines, in both directions.

The supervisor first sends what to run, then renewals of the lease and requests to stop. The process
sends ticks (its event loop turns), progress (it has committed), and a last message if it ends
itself. End of file means to the process that its supervisor is dead.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson


class StopCause(StrEnum):
    """Causes of a request to stop."""

    PAUSE = "pause"
    SHUTDOWN = "shutdown"
    ORPHANED = "orphaned"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Worker, database and settings of a process; `work` is for the module that it runs.

    `renewed_at` is when its lease was last renewed; None if it gets one only when it has started.
    """

    worker_id: str
    database_url: str
    settings: Mapping[str, Any]
    renewed_at: float | None = None
    work: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease was renewed; `at` is the sender's clock before it asked the database."""

    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    cause: StopCause


@dataclass(frozen=True, slots=True)
class Continue:
    """A pause was revoked before the process had exited."""


@dataclass(frozen=True, slots=True)
class Tick:
    """`busy_for`: how long it has been at its oldest piece of work; None if that has no limit."""

    progress: bool = False
    busy_for: float | None = None


@dataclass(frozen=True, slots=True)
class Unrenewed:
    """The last message: the lease was not renewed in time, so the process ends itself."""


Message = Assignment | Renewed | Stop | Continue | Tick | Unrenewed

_TYPES = {t.__name__: t for t in (Assignment, Renewed, Stop, Continue, Tick, Unrenewed)}


def encode(message: Message) -> bytes:
    return orjson.dumps({"type": type(message).__name__, **_fields(message)}) + b"\n"


def decode(line: bytes) -> Message:
    fields = orjson.loads(line)
    message_type = _TYPES[fields.pop("type")]
    if message_type is Stop:
        return Stop(StopCause(fields["cause"]))
    return message_type(**fields)


def receive_assignment(control: socket.socket) -> Assignment:
    """Read the first line, and not a byte more: the guardian reads the rest."""
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
