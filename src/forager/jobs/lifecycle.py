"""The lifecycle of a job: its states, and the table of legal moves between them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from forager.errors import NotAllowed


class Status(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"


ACTIVE = frozenset({Status.PENDING, Status.PROCESSING, Status.PAUSED})
FINISHED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move, and what it does to the row besides the status."""

    name: str
    sources: frozenset[Status]
    target: Status
    # made by the holder of the lease, and refused to all others
    fenced: bool = False
    # revokes the lease: its former holder can no longer write
    revokes: bool = False
    keeps_worker: bool = False
    # only while a runner is still there (True) or no longer there (False)
    needs_worker: bool | None = None
    resets_retries: bool = False
    resets_progress: bool = False

    @property
    def finishes(self) -> bool:
        return self.target in FINISHED


def _move(name: str, sources: set[Status], target: Status, **effects: bool) -> Transition:
    return Transition(name, frozenset(sources), target, **effects)


_S = Status

CLAIM = _move("claim", {_S.PENDING}, _S.PROCESSING, revokes=True)
COMPLETE = _move("complete", {_S.PROCESSING}, _S.COMPLETED, fenced=True)
FAIL = _move("fail", {_S.PROCESSING}, _S.FAILED, fenced=True, revokes=True)
RETRY_LATER = _move("retry later", {_S.PROCESSING}, _S.PENDING, fenced=True, revokes=True)
RELEASE = _move("release", {_S.PROCESSING}, _S.PENDING, fenced=True, revokes=True)
PARK = _move("park", {_S.PAUSED}, _S.PAUSED, fenced=True, revokes=True, needs_worker=True)
PAUSE_PENDING = _move("pause", {_S.PENDING}, _S.PAUSED)
PAUSE_RUNNING = _move("pause", {_S.PROCESSING}, _S.PAUSED, keeps_worker=True)
RESUME_PAUSED = _move("resume", {_S.PAUSED}, _S.PENDING, needs_worker=False)
RESUME_PAUSING = _move("resume", {_S.PAUSED}, _S.PROCESSING, needs_worker=True, keeps_worker=True)
CANCEL = _move("cancel", {_S.PENDING, _S.PROCESSING, _S.PAUSED}, _S.CANCELLED, revokes=True)
RETRY = _move("retry", {_S.FAILED}, _S.PENDING, revokes=True, resets_retries=True)
# a finished job gets work again: URLs that failed, which are back in its frontier
RETRY_FAILED = _move(
    "retry failed",
    {_S.COMPLETED, _S.FAILED},
    _S.PENDING,
    revokes=True,
    resets_retries=True,
    resets_progress=True,
)

MOVES = tuple(each for each in list(vars().values()) if isinstance(each, Transition))


def moves_by_hand(status: Status) -> list[str]:
    """The moves that a person may make in this state, by name."""
    return sorted(
        {m.name for m in MOVES if status in m.sources and not m.fenced and m is not CLAIM}
    )


class IllegalMove(NotAllowed):
    """The job's state does not allow this."""

    def __init__(self, job_id: object, action: str, status: Status) -> None:
        possible = ", ".join(moves_by_hand(status)) or "nothing, it is final"
        super().__init__(
            f"cannot {action} job {job_id}: it is {status}",
            hint=f"Possible now: {possible}.",
        )
        self.action = action
        self.status = status
