"""How a run of a job ended, as its handler sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class Completed:
    """Everything is done.

    `finish` runs in the transaction that completes the job, so that both happen or neither; what
    it returns, if anything, replaces the stop reason.
    """

    stop_reason: str = "finished"
    finish: Callable[[Connection], Awaitable[str | None]] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing can be done for a while: give the job back until then. Spends no retry."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The handler was asked to stop, and has committed what it had."""


Outcome = Completed | Waiting | Stopped
