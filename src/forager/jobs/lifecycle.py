"""The lifecycle of a job: its states, and the table of legal moves between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from forager.backoff import backoff_sql
from forager.errors import NotAllowed


class Status(StrEnum):
    """The state of a job."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"


ACTIVE = frozenset({Status.PENDING, Status.PROCESSING, Status.PAUSED})
FINISHED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


# The one predicate for retries: errors of a handler, dead runners and dead workers alike.
MAY_RETRY = "(crawl_jobs.retry_count < crawl_jobs.max_retries AND NOT %(permanent)s)"

BACKOFF = backoff_sql("crawl_jobs.retry_count", "%(retry_delay)s", "%(retry_delay_max)s")

# A job that was in this many lost runners gets its own runner.
LOSSES_LIMIT = 2


@dataclass(frozen=True, slots=True)
class Transition:
    """One legal move, and what it does to the row besides the status.

    `allowed` and `changes` are its SQL, for a row of `crawl_jobs`.
    """

    name: str
    sources: frozenset[Status]
    target: Status
    # made by the holder of the lease, and refused to all others
    fenced: bool = False
    # assigns the job to %(worker_id)s; other moves remove it from its worker, unless they keep it
    claims: bool = False
    # revokes the lease: its former holder can no longer write
    revokes: bool = False
    keeps_worker: bool = False
    # only while a runner is still there (True) or no longer there (False)
    needs_worker: bool | None = None
    spends_retry: bool = False
    resets_retries: bool = False
    resets_progress: bool = False
    stores_error: bool = False
    # the runner was lost; a known count is given as `b.losses`
    counts_loss: bool = False
    # whether it runs in its own runner from now on
    own_runner: bool | None = None

    @property
    def finishes(self) -> bool:
        return self.target in FINISHED

    @property
    def allowed(self) -> str:
        """The condition of the move."""
        statuses = ", ".join(f"'{status}'" for status in sorted(self.sources))
        state = f"crawl_jobs.status IN ({statuses})"
        if self.needs_worker is None:
            return state
        return f"{state} AND (crawl_jobs.worker_id IS NOT NULL) = {self.needs_worker}"

    @property
    def changes(self) -> dict[str, str]:
        """The new values by column; columns that are not here keep their value."""
        changed = {"status": f"'{self.target}'::job_status", "completed_at": "NULL"}
        if not self.keeps_worker:
            changed["worker_id"] = "%(worker_id)s" if self.claims else "NULL"
        if self.claims:
            changed |= {
                "started_at": "coalesce(crawl_jobs.started_at, now())",
                "last_heartbeat": "now()",
            }
        if self.revokes:
            changed["lease"] = "crawl_jobs.lease + 1"
        return changed | self._counters | self._result_columns

    @property
    def _counters(self) -> dict[str, str]:
        changed: dict[str, str] = {}
        if self.target is Status.PENDING:
            wait = BACKOFF if self.spends_retry else "%(delay)s * interval '1 second'"
            changed["run_after"] = f"now() + {wait}"
        if self.spends_retry:
            changed["retry_count"] = "crawl_jobs.retry_count + 1"
        if self.resets_retries:
            changed |= {"retry_count": "0", "runner_losses": "0"}
        if self.counts_loss:
            losses = "coalesce(b.losses, crawl_jobs.runner_losses + 1)"
            changed["runner_losses"] = losses
            changed["own_runner"] = f"crawl_jobs.own_runner OR {losses} >= {LOSSES_LIMIT}"
        if self.own_runner is not None:
            changed["own_runner"] = str(self.own_runner)
        if self.own_runner is False:  # one more loss, and it runs alone again
            changed["runner_losses"] = str(LOSSES_LIMIT - 1)
        return changed

    @property
    def _result_columns(self) -> dict[str, str]:
        changed: dict[str, str] = {}
        if self.finishes:
            changed |= {"completed_at": "now()", "stop_reason": "%(stop_reason)s"}
        if self.target is Status.COMPLETED:
            changed["progress_percentage"] = "100"
        if self.resets_progress:
            changed |= {"progress_percentage": "0", "stop_reason": "NULL"}
        if self.stores_error:
            changed["error_message"] = "%(error)s"
        if self.stores_error and self.finishes:
            changed["error_message"] = (
                "CASE WHEN %(permanent)s THEN %(error)s ELSE 'crashed and exceeded max retries ('"
                " || crawl_jobs.max_retries || '): ' || %(error)s END"
            )
        if self.target is Status.COMPLETED or self.resets_retries:
            changed["error_message"] = "NULL"
        return changed


def _move(name: str, sources: set[Status], target: Status, **effects: bool) -> Transition:
    return Transition(name, frozenset(sources), target, **effects)


_S = Status

CLAIM = _move("claim", {_S.PENDING}, _S.PROCESSING, claims=True, revokes=True)
COMPLETE = _move("complete", {_S.PROCESSING}, _S.COMPLETED, fenced=True)
FAIL = _move("fail", {_S.PROCESSING}, _S.FAILED, fenced=True, revokes=True, stores_error=True)
RELEASE = _move("release", {_S.PROCESSING}, _S.PENDING, fenced=True, revokes=True)
RETRY_LATER = replace(RELEASE, name="retry later", spends_retry=True, stores_error=True)
# the runner that it shared with other jobs was lost
REQUEUE = replace(RELEASE, name="requeue", counts_loss=True)
MOVE_OUT = replace(RELEASE, name="move out", own_runner=True)
MOVE_BACK = replace(RELEASE, name="move back", own_runner=False)
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


@dataclass(frozen=True, slots=True)
class Choice:
    """A move that is made if its condition holds; the first possible one of several is made."""

    move: Transition
    condition: str = "true"


# a pausing job is paused by every end of its run
PARKED = Choice(PARK)
END_OF_RELEASE = (Choice(RELEASE), PARKED)
END_OF_FAILED_RUN = (PARKED, Choice(RETRY_LATER, MAY_RETRY), Choice(FAIL))
END_OF_LOST_RUN = (PARKED, Choice(REQUEUE))
# a dead worker: only a job that ran alone can be the cause with certainty
RECOVERY = (
    PARKED,
    Choice(REQUEUE, "NOT crawl_jobs.own_runner"),
    Choice(RETRY_LATER, MAY_RETRY),
    Choice(FAIL),
)


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
            f"cannot {action} job {job_id}: it is {status}", hint=f"Possible now: {possible}."
        )
        self.action = action
        self.status = status
