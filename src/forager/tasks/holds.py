"""Holds: pause, resume and stop all tasks, those of a domain, or a selection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from forager.amounts import counted, listed
from forager.db.database import Connection, Database
from forager.errors import NotFound
from forager.fetch.domains.service import domains_below, domains_of, hold_domain
from forager.hints import Hint, action
from forager.tasks.selection import Selection
from forager.tasks.store import activity as task_counts
from forager.tasks.store import changes as store
from forager.tasks.store import reads
from forager.tasks.store.stages import notify_workers
from forager.tasks.task import Hold


@dataclass(frozen=True, slots=True)
class HoldChange:
    """The effect of a hold or its end, and all holds afterwards."""

    changed: int
    withdrawn: int
    all_hold: Hold | None
    held_domains: int
    held_tasks: int


def describe_holds(change: HoldChange) -> str:
    """What is on hold after a change, for users."""
    now = []
    if change.withdrawn:
        now.append(f"{counted(change.withdrawn, 'task')} returned to the schedule.")
    if change.all_hold is not None:
        now.append(f"All tasks are {change.all_hold}.")
    if change.held_domains:
        now.append(f"{counted(change.held_domains, 'domain')} on hold.")
    if change.held_tasks:
        now.append(f"{counted(change.held_tasks, 'task')} on hold.")
    return " ".join(now) or "No tasks are on hold."


class Holds:
    """Pauses, stops and resumes all tasks, those of a domain, or single ones.

    A hold is not a status: a task that is due stays due, and runs when nothing holds it any more.

        await Holds(database).pause(Selection(domain="shop.example.org"))
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pause(self, selection: Selection) -> HoldChange:
        """Start nothing new; tasks in progress are finished."""
        return await self._hold(selection, Hold.PAUSED)

    async def stop(self, selection: Selection) -> HoldChange:
        """Start nothing new, and withdraw tasks in progress."""
        return await self._hold(selection, Hold.STOPPED)

    async def resume(self, selection: Selection) -> HoldChange:
        """Lift the hold of exactly this selection: a domain stays held when all are resumed."""
        return await self._hold(selection, None)

    async def _hold(self, selection: Selection, hold: Hold | None) -> HoldChange:
        if selection.is_everything:
            changed, withdrawn = await self._hold_all(hold)
        elif selection.is_domain_alone:
            changed, withdrawn = await self._hold_domain(selection.domain or "", hold)
        else:
            changed, withdrawn = await self._hold_selected(selection, hold)
        async with self._database.connection() as connection:
            await notify_workers(connection)
            all_hold, domains, tasks = await task_counts.count_holds(connection)
        return HoldChange(
            changed, withdrawn, None if all_hold is None else Hold(all_hold), domains, tasks
        )

    async def _hold_all(self, hold: Hold | None) -> tuple[int, int]:
        # the hold is committed first, so that the withdrawal includes what a tick has queued
        async with self._database.connection() as connection:
            changed = await store.hold_all(connection, hold)
            return changed, await store.withdraw(connection, hold)

    async def _hold_domain(self, host: str, hold: Hold | None) -> tuple[int, int]:
        changed = withdrawn = 0
        async with self._database.connection() as connection:
            for domain_id in await domains_of(connection, host):
                changed += await hold_domain(connection, domain_id, hold)
                withdrawn += await store.withdraw(connection, hold, domain_id=domain_id)
        return changed, withdrawn

    async def _hold_selected(self, selection: Selection, hold: Hold | None) -> tuple[int, int]:
        async def hold_batch(connection: Connection, ids: list[int]) -> tuple[int, int]:
            changed = await store.hold_tasks(connection, ids, hold)
            return changed, await store.withdraw(connection, hold, ids=ids)

        _, parts = await in_batches(self._database, selection, hold_batch)
        return sum(changed for changed, _ in parts), sum(withdrawn for _, withdrawn in parts)


BATCH = 2_000

Answer = TypeVar("Answer")


async def in_batches(
    database: Database,
    selection: Selection,
    work: Callable[[Connection, list[int]], Awaitable[Answer]],
    *,
    destroys: bool = False,
) -> tuple[int, list[Answer]]:
    """Apply `work` to a selection in batches, each in a transaction.

    Returns the number of tasks, and the results by batch. `destroys`: the selection includes the
    named host and its subdomains, but no parent domain.
    """
    domain_ids = await domain_ids_of(database, selection, destroys=destroys)
    after = found = 0
    answers: list[Answer] = []
    while True:
        async with database.transaction() as connection:
            ids = await reads.select_ids(
                connection, selection, domain_ids=domain_ids, after=after, limit=BATCH
            )
            if ids:
                answers.append(await work(connection, ids))
        found += len(ids)
        if len(ids) < BATCH:
            break
        after = ids[-1]
    if selection.ids and not found:
        raise no_such_task(*selection.ids)
    return found, answers


async def domain_ids_of(
    database: Database, selection: Selection, *, destroys: bool = False
) -> list[int] | None:
    """The domains of a selection; None if it is not by domain."""
    if selection.domain is None:
        return None
    async with database.connection() as connection:
        return await (domains_below if destroys else domains_of)(connection, selection.domain)


def no_such_task(*named: object) -> NotFound:
    return NotFound(
        f"there is no task {listed(named)}", hint=Hint("{} lists tasks.", action("tasks list"))
    )
