"""Settling: writes the attempts of one batch, and isolates those that cannot be written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from forager.archive.warc_record import ArchiveError
from forager.db.database import Connection
from forager.db.outages import retry_until_available
from forager.db.refusals import REFUSALS, isolate_refused
from forager.errors import ErrorKind, Retry, StatementTimedOut, error_text
from forager.failures.cause import Cause, cause_of, one_line
from forager.failures.service import insert_errors
from forager.logs import get_logger
from forager.metrics.catalog import DOWNLOADS, ERRORS, PARSES
from forager.products.replacements import withdraw_products
from forager.settings import Settings
from forager.tasks.alarms import GONE, hold_suspicious
from forager.tasks.lifecycle import FAIL, MISS, POSTPONE, RECOVER, RETRY_LATER, WITHHOLD
from forager.tasks.schedule import intervals_of
from forager.tasks.stages.attempt import Attempt, Stage, StageOfWorker, TaskOutcome
from forager.tasks.store import alarms as alarm_store
from forager.tasks.store import dead_letters
from forager.tasks.store import stages as store

log = get_logger("tasks")

_WITHHELD_FOR = 3600.0

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# the moves of attempts that do not complete their stage
MOVE_AFTER = {
    TaskOutcome.RETRY: RETRY_LATER,
    TaskOutcome.DEFERRED: POSTPONE,
    TaskOutcome.MISSED: MISS,
    TaskOutcome.WITHHELD: WITHHOLD,
    TaskOutcome.FAILED: FAIL,
    TaskOutcome.LOST: RECOVER,
}
_ERRORS = frozenset(MOVE_AFTER) - {TaskOutcome.DEFERRED}


async def settle(
    connection: Connection, who: StageOfWorker, attempts: Sequence[Attempt], settings: Settings
) -> list[Attempt]:
    """Write the outcomes of attempts; their stage moves the tasks that succeeded.

    Returns the attempts as they were settled: failures may be held or stay on schedule.
    """
    if not attempts:
        return []
    if who.stage is Stage.DOWNLOAD:
        attempts = await hold_suspicious(connection, attempts)
    attempts = await _with_missed(connection, attempts, settings)
    attempts = await _with_intervals(connection, attempts, settings)
    for outcome, move in MOVE_AFTER.items():
        if ended := _ended(attempts, outcome):
            await store.move(connection, move, ended)
    if withheld := _ended(attempts, TaskOutcome.WITHHELD):
        await store.forget_validators(connection, [attempt.task.id for attempt in withheld])
    if failed := _ended(attempts, TaskOutcome.FAILED):
        await dead_letters.insert_letters(connection, who.stage, failed)
    if errors := _ended(attempts, *_ERRORS):
        await insert_errors(connection, who.stage.value, errors)
    await store.insert_attempts(connection, who, attempts)
    await _withdraw_gone(connection, attempts, settings)
    return attempts


async def _with_intervals(
    connection: Connection, attempts: Sequence[Attempt], settings: Settings
) -> list[Attempt]:
    """Schedule missed visits by the interval of their tasks, and held ones at most that late.

    A domain that responds with challenges is visited again soon after its pause.
    """
    longest = {TaskOutcome.MISSED: float("inf"), TaskOutcome.WITHHELD: _WITHHELD_FOR}
    ids = [attempt.task.id for attempt in attempts if attempt.outcome in longest]
    every = await intervals_of(connection, ids, settings) if ids else {}
    return [
        replace(a, delay=min(every[a.task.id].total_seconds(), longest[a.outcome]))
        if a.task.id in every
        else a
        for a in attempts
    ]


async def _with_missed(
    connection: Connection, attempts: Sequence[Attempt], settings: Settings
) -> list[Attempt]:
    """Turn failures that are not final yet into missed visits."""
    failed = _ended(attempts, TaskOutcome.FAILED)
    if not failed:
        return list(attempts)
    failing = await store.select_failing(connection, [attempt.task.id for attempt in failed])
    missed = {a.task.id for a in failed if _is_missed(a, failing.get(a.task.id), settings)}
    return [replace(a, outcome=TaskOutcome.MISSED) if a.task.id in missed else a for a in attempts]


def _is_missed(attempt: Attempt, failing: store.FailingTask | None, settings: Settings) -> bool:
    """Whether an outage may explain the failure.

    It may also explain a 404, an expired certificate or another robots.txt of a page that was read
    before.
    """
    is_permanent = attempt.http_status in GONE or (attempt.cause and attempt.cause.permanent)
    if failing is None or (is_permanent and not failing.was_read):
        return False
    few = failing.failed_visits + 1 < settings.dead_letter_visits
    return few or failing.seconds < settings.dead_letter_after


async def _withdraw_gone(
    connection: Connection, attempts: Sequence[Attempt], settings: Settings
) -> None:
    """Discontinue products whose pages are gone, once enough visits have confirmed it."""
    failed = _ended(attempts, TaskOutcome.MISSED, TaskOutcome.FAILED)
    ids = [attempt.task.id for attempt in failed if attempt.http_status in GONE]
    if ids:
        gone = await alarm_store.select_gone(
            connection, ids, visits=settings.gone_visits, seconds=settings.gone_after
        )
        await withdraw_products(connection, gone)
        await store.forget_validators(connection, gone)


def _ended(attempts: Iterable[Attempt], *outcomes: TaskOutcome) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.outcome in outcomes]


async def commit_isolated(
    items: Sequence[Item],
    commit: Callable[[Sequence[Item]], Awaitable[None]],
    refuse: Callable[[Item, Cause], Awaitable[None]],
) -> None:
    """Commit all items together; each one that cannot be written is refused alone."""

    # one page must not delay the others, whatever the error
    async def commit_in_time(some: Sequence[Item]) -> None:
        try:
            await commit(some)
        except StatementTimedOut as error:  # not retried: fewer items may be written in time
            raise Retry(error.message, kind=ErrorKind.INTERNAL) from error

    refused = await isolate_refused(
        items, lambda some: retry_until_stored(lambda: commit_in_time(some)), refusals=(Exception,)
    )
    for item, error in refused:
        cause = refusal(error)
        log.error("what a task brought cannot be written", reason=cause.message)
        await retry_until_stored(partial(refuse, item, cause))


def refusal(error: Exception) -> Cause:
    """The cause for a result that was not written: its content, or a bug."""
    if isinstance(error, REFUSALS):
        return Cause(
            ErrorKind.VALIDATION, one_line(f"the database refuses it: {error_text(error)}")
        )
    return cause_of(error)


async def retry_until_stored(write: Callable[[], Awaitable[Answer]]) -> Answer:
    """Repeat an idempotent write until the database and the archive are available."""
    return await retry_until_available(write, log, also=(ArchiveError,))


def record(stage: Stage, attempts: Iterable[Attempt]) -> None:
    """Record metrics of a commit."""
    meter = DOWNLOADS if stage is Stage.DOWNLOAD else PARSES
    for attempt in attempts:
        meter.add(attempt.outcome)
        if attempt.cause is not None and attempt.outcome in _ERRORS:
            ERRORS.add(attempt.cause.kind)
