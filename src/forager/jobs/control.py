"""The socket between a supervisor and one runner: JSON lines, in both directions.

The supervisor sends first what to run, then renewals of the lease and requests to stop. The
runner sends ticks (its event loop turns), progress (it has committed), and a last word if it ends
itself. End of file means to the runner that its supervisor is dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson


class StopCause(StrEnum):
    """Why a runner is asked to stop."""

    PAUSE = "pause"
    SHUTDOWN = "shutdown"
    ORPHANED = "orphaned"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a runner is to run, and with what."""

    job_id: str
    kind: str
    lease: int
    worker_id: str
    database_url: str
    renewed_at: float
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease was renewed; `at` is the sender's clock before it asked the database."""

    at: float


@dataclass(frozen=True, slots=True)
class Stop:
    cause: StopCause


@dataclass(frozen=True, slots=True)
class Continue:
    """A pause was taken back before the runner had left."""


@dataclass(frozen=True, slots=True)
class Tick:
    progress: bool = False


@dataclass(frozen=True, slots=True)
class Unrenewed:
    """The runner's last word: nobody renewed its lease in time, so it ends itself."""


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


def _fields(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__dataclass_fields__}
