"""Settling: how the attempts of one batch are written, and what happens if that is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from forager.archive.errors import ArchiveError
from forager.db.database import Connection
from forager.db.refusals import REFUSALS, isolate_refused
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind
from forager.extract.product.record import Availability
from forager.index.kind import PRODUCTS
from forager.index.store import enqueue_rows
from forager.logs import get_logger
from forager.metrics.recorded import DOWNLOADS, ERRORS, LEASE_LOSSES, PARSES
from forager.products.store import writes as product_store
from forager.tasks.causes import Cause, cause_of, one_line
from forager.tasks.stages.attempt import Attempt, HeldTask, Outcome, Stage, StageOfWorker
from forager.tasks.store import dead_letters, errors
from forager.tasks.store import stages as store
from forager.webhooks.events import EventKind, NewEvent, record_events

log = get_logger("tasks")

# what passes by itself; nothing else may hold up a batch
TROUBLE = (DatabaseUnavailable, DiskFull, ArchiveError)
PAUSE = 0.5
PAUSE_WHEN_FULL = 5.0

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def settle(connection: Connection, who: StageOfWorker, attempts: Sequence[Attempt]) -> None:
    """Write how attempts ended; the tasks of those that succeeded are moved on by their stage."""
    retried = _with(Outcome.RETRY, attempts)
    failed = _with(Outcome.FAILED, attempts)
    rested = _with(Outcome.RESTED, attempts)
    if retried:
        await store.postpone(connection, retried, spend=True)
    if rested:
        await store.postpone(connection, rested, spend=False)
    if failed:
        await store.fail(connection, failed)
        await dead_letters.insert_letters(connection, who.stage, failed)
        await withdraw_gone(connection, failed)
    if retried or failed:
        await errors.insert_errors(connection, who.stage, [*retried, *failed])
    if attempts:
        await store.insert_attempts(connection, who, attempts)


def _with(outcome: Outcome, attempts: Iterable[Attempt]) -> list[Attempt]:
    return [attempt for attempt in attempts if attempt.outcome is outcome]


async def in_halves(
    items: Sequence[Item],
    commit: Callable[[Sequence[Item]], Awaitable[None]],
    refuse: Callable[[Item, Cause], Awaitable[None]],
) -> None:
    """Commit all together; each item that cannot be written is refused alone.

    Each half is its own transaction: what stands in it is complete in itself.
    """
    # one page must not hold up the others, whatever it breaks
    refused = await isolate_refused(
        items, lambda some: patiently(lambda: commit(some)), refusals=(Exception,)
    )
    for item, error in refused:
        cause = refusal(error)
        log.error("what a task brought cannot be written", reason=cause.message)
        await patiently(partial(refuse, item, cause))


def refusal(error: Exception) -> Cause:
    """Why something was not written: for its content, or for a fault of ours."""
    if isinstance(error, REFUSALS):
        return Cause(ErrorKind.VALIDATION, one_line(f"the database refuses it: {error}"))
    return cause_of(error)


async def patiently(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask until database and archive answer. Only for what is harmless to repeat.

    The wait is bounded from outside: without the database nobody renews this worker's row, and it
    ends itself.
    """
    said = False
    try:
        while True:
            try:
                return await ask()
            except TROUBLE as error:
                if not said:
                    log.warning("cannot be written now, will try again", reason=error.message)
                    _WAITING.append(error)
                said = True
                await asyncio.sleep(PAUSE_WHEN_FULL if isinstance(error, DiskFull) else PAUSE)
    finally:
        if said:
            _WAITING.pop()


# one entry for each write of this process that waits for the database or the archive
_WAITING: list[Exception] = []


def waits_for_storage() -> bool:
    """Whether a write waits: tasks that cannot be settled for that reason are not stuck."""
    return bool(_WAITING)


def say_lost(stage: Stage, tasks: Sequence[HeldTask], kept: set[int]) -> None:
    """Say which results are dropped, because their tasks belong to somebody else by now."""
    lost = [task.id for task in tasks if task.id not in kept]
    if lost:
        LEASE_LOSSES.add("task", amount=len(lost))
        log.warning("results dropped: the tasks were taken away", stage=stage, tasks=lost[:20])


def record(stage: Stage, attempts: Iterable[Attempt]) -> None:
    """For the metrics: what a commit has settled."""
    meter = DOWNLOADS if stage is Stage.DOWNLOAD else PARSES
    for attempt in attempts:
        meter.add(attempt.outcome)
        if attempt.cause is not None and attempt.outcome in (Outcome.RETRY, Outcome.FAILED):
            ERRORS.add(attempt.cause.kind)


# Not Found and Gone, said at every retry
GONE = frozenset({404, 410})


async def withdraw_gone(connection: Connection, failed: Sequence[Attempt]) -> None:
    """Products of tasks that failed because their pages are gone; in the commit that says so."""
    ids = [attempt.task.id for attempt in failed if attempt.http_status in GONE]
    if not ids:
        return
    withdrawn = await product_store.withdraw_products(connection, ids, Availability.DISCONTINUED)
    await enqueue_rows(connection, PRODUCTS, [product.id for product in withdrawn])
    await record_events(connection, [_event(product) for product in withdrawn])


def _event(product: product_store.WithdrawnProduct) -> NewEvent:
    told = {
        "name": product.product_name,
        "url": product.url,
        "old": product.availability,
        "new": Availability.DISCONTINUED.value,
    }
    return NewEvent(EventKind.AVAILABILITY_CHANGED, product.id, product.domain_id, told)
