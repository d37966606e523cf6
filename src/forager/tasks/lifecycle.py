"""The lifecycle of a task: its states, and the moves from which every UPDATE is built.

Pausing and stopping are holds, not states. A move has its source and target states and its other
effects; `changes` and `allowed` are its SQL for a row named `t`, and the attempt `a` that ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class TaskStatus(StrEnum):
    """The state of a task."""

    PENDING = "pending"
    QUEUED = "queued"
    CRAWLING = "crawling"
    DOWNLOADED = "downloaded"
    PARSING = "parsing"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMove:
    """A legal move, and its effects on the row besides the status."""

    name: str
    steps: Mapping[TaskStatus, TaskStatus]
    # assigns the task to %(worker_id)s; every other move removes it from its worker
    claims: bool = False
    # increments the lease, so that the earlier holder cannot write
    revokes: bool = False
    starts: bool = False
    finishes: bool = False
    unschedules: bool = False
    spends_retry: bool = False
    resets_retries: bool = False
    clears_error: bool = False
    # of an attempt: when the next one may start, why it failed, and a failed visit in a row
    delays: bool = False
    stores_error: bool = False
    counts_visit: bool = False

    @property
    def allowed(self) -> str:
        if len(self.steps) == 1:
            return f"t.status = {_literal(*self.steps)}"
        return f"t.status IN ({', '.join(map(_literal, self.steps))})"

    @property
    def changes(self) -> str:
        """The assignments of an UPDATE."""
        effects = {
            "lease = t.lease + 1": self.claims or self.revokes,
            "started_at = now()": self.starts,
            "completed_at = now()": self.finishes,
            "next_crawl_at = NULL": self.unschedules,
            "retry_count = t.retry_count + 1": self.spends_retry,
            "retry_count = 0": self.resets_retries,
            "error_kind = NULL, error_message = NULL": self.clears_error,
            "failed_visits = 0, failing_since = NULL": self.clears_error,
            "scheduled_at = now() + a.delay * interval '1 second'": self.delays,
            "error_kind = a.error_kind, error_message = a.error_message": self.stores_error,
            "failed_visits = t.failed_visits + 1": self.counts_visit,
            "failing_since = coalesce(t.failing_since, now())": self.counts_visit,
        }
        return ", ".join(
            (
                f"status = {self._target}",
                f"worker_id = {'%(worker_id)s' if self.claims else 'NULL'}",
                "updated_at = now()",
                *(effect for effect, applies in effects.items() if applies),
            )
        )

    @property
    def _target(self) -> str:
        targets = set(self.steps.values())
        if len(targets) == 1:
            return _literal(*targets)
        cases = (f"WHEN {_literal(a)} THEN {_literal(b)}" for a, b in self.steps.items())
        return f"CASE t.status {' '.join(cases)} END"


def _literal(status: TaskStatus) -> str:
    return f"'{status.value}'"


_S = TaskStatus
# the state before a claim
_CLAIMED_FROM = {_S.CRAWLING: _S.QUEUED, _S.PARSING: _S.DOWNLOADED}

QUEUE = TaskMove(name="queue", steps={_S.PENDING: _S.QUEUED})
CLAIM_DOWNLOAD = TaskMove(name="claim", steps={_S.QUEUED: _S.CRAWLING}, claims=True, starts=True)
STORE_PAGE = TaskMove(name="store page", steps={_S.CRAWLING: _S.DOWNLOADED})
CLAIM_PARSE = TaskMove(name="claim", steps={_S.DOWNLOADED: _S.PARSING}, claims=True)
# unchanged pages are not parsed
COMPLETE = TaskMove(
    name="complete",
    steps={_S.CRAWLING: _S.COMPLETED, _S.PARSING: _S.COMPLETED},
    finishes=True,
    resets_retries=True,
    clears_error=True,
)
FAIL = TaskMove(
    name="fail",
    steps={_S.CRAWLING: _S.FAILED, _S.PARSING: _S.FAILED},
    finishes=True,
    unschedules=True,
    stores_error=True,
    counts_visit=True,
)
# without a fault of the task, such as a rate-limited host
POSTPONE = TaskMove(
    name="postpone", steps={_S.CRAWLING: _S.PENDING, _S.PARSING: _S.PENDING}, delays=True
)
RETRY_LATER = replace(POSTPONE, name="retry later", spends_retry=True, stores_error=True)
# the result was not believed: visited again soon
WITHHOLD = replace(POSTPONE, name="doubt", finishes=True, resets_retries=True, stores_error=True)
# the last retry of a visit failed: the next visit is by the interval
MISS = replace(WITHHOLD, name="miss", counts_visit=True)
RELEASE = TaskMove(name="release", steps=_CLAIMED_FROM, revokes=True)
WITHDRAW = TaskMove(
    name="withdraw",
    steps={_S.QUEUED: _S.PENDING, _S.CRAWLING: _S.PENDING, _S.PARSING: _S.DOWNLOADED},
    revokes=True,
)
# like a job, a task spends a retry on the death of its worker: a page that kills workers must not
# be retried forever
RECOVER = replace(RELEASE, name="recover", spends_retry=True, stores_error=True)
COME_DUE = TaskMove(
    name="come due", steps={_S.COMPLETED: _S.PENDING}, unschedules=True, resets_retries=True
)
RECRAWL = TaskMove(
    name="recrawl",
    steps={_S.PENDING: _S.PENDING, _S.COMPLETED: _S.PENDING, _S.FAILED: _S.PENDING},
    unschedules=True,
    resets_retries=True,
)
RETRY = TaskMove(
    name="retry", steps={_S.FAILED: _S.PENDING}, resets_retries=True, clears_error=True
)

MOVES = tuple(each for each in list(vars().values()) if isinstance(each, TaskMove))
