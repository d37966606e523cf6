"""Recovery: tasks whose worker died go back to the stage they were claimed from.

The same rule as the watchdog's: a heartbeat must be old, and be the same that was seen at the look
before. Workers of this machine need not be waited for: whether they live can be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

from forager.db.database import Connection, Database
from forager.jobs.workers import delete_unseen
from forager.logs import get_logger
from forager.metrics.recorded import LEASE_LOSSES
from forager.processes.identity import has_died
from forager.services.service import Service
from forager.settings import Settings
from forager.tasks.causes import message_key
from forager.tasks.hints import tell
from forager.tasks.schedule import intervals_of
from forager.tasks.store import recovery as store
from forager.tasks.store import stages
from forager.tasks.store.recovery import Holder
from forager.tasks.task import RecoveredTask

log = get_logger("recovery")

CHUNK = 1_000
WORKER_DIED = "the process of the worker has died"

Recover = Callable[[Connection], Awaitable[list[RecoveredTask]]]


class TaskRecovery:
    """Any number of processes may look; a task is recovered once."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._suspects: dict[UUID, datetime | None] = {}

    def service(self) -> Service:
        return Service(
            name="task recovery",
            every=self._settings.watchdog_interval,
            step=self.run_once,
            first_within=0.0,
        )

    async def run_once(self) -> list[RecoveredTask]:
        """One look: recover what is certainly dead, and what was silent at the look before too."""
        holders = await self._database.run(
            store.select_holders, stale_after=self._settings.stale_after
        )
        dead = [h for h in holders if h.process is not None and has_died(h.process)]
        silent = [h for h in holders if h.is_stale and h not in dead]
        given_up = [
            h for h in silent if h.id in self._suspects and self._suspects[h.id] == h.last_seen
        ]
        self._suspects = {h.id: h.last_seen for h in silent}
        return [*await self._recover_dead(dead), *await self._recover_stale(given_up)]

    async def look_twice(self) -> list[RecoveredTask]:
        """Look, give the living time to beat, and look again. For a person who asks once."""
        recovered = await self.run_once()
        if self._suspects:
            await asyncio.sleep(self._settings.heartbeat_interval * 1.5)
            recovered += await self.run_once()
        return recovered

    async def recover_worker(self, worker_id: UUID) -> list[RecoveredTask]:
        """Take everything from one worker whose process has ended; its row goes too."""
        return await self._recover_dead(await self._holder(worker_id))

    async def release_worker(self, worker_id: UUID, *, reason: str) -> None:
        """The same, for an end that was not the fault of the tasks: none spends a retry."""
        async with self._database.transaction() as connection:
            given = await stages.give_back(connection, worker_id, reason=reason)
            await tell(connection, self._settings, given)
        holder = await self._holder(worker_id)
        await self._forget_workers(holder)

    async def _forget_workers(self, workers: Sequence[Holder]) -> None:
        """Delete the rows of dead workers that hold nothing: this closes their segments, too."""
        async with self._database.transaction() as connection:
            holding = await store.select_holding(connection, [worker.id for worker in workers])
            free = [worker for worker in workers if worker.id not in holding]
            await delete_unseen(
                connection, [worker.id for worker in free], [worker.last_seen for worker in free]
            )

    async def _holder(self, worker_id: UUID) -> list[Holder]:
        holders = await self._database.run(
            store.select_holders, stale_after=self._settings.stale_after
        )
        return [holder for holder in holders if holder.id == worker_id]

    async def _recover_dead(self, dead: Sequence[Holder]) -> list[RecoveredTask]:
        return await self._recover(
            dead,
            lambda connection: store.recover_dead(
                connection,
                [worker.id for worker in dead],
                reason=WORKER_DIED,
                key=WORKER_DIED,
                visits=self._settings.dead_letter_visits,
                after=self._settings.dead_letter_after,
                limit=CHUNK,
            ),
        )

    async def _recover_stale(self, given_up: Sequence[Holder]) -> list[RecoveredTask]:
        stale_after = self._settings.stale_after
        reason = f"the worker sent no heartbeat for more than {stale_after:g} s"
        return await self._recover(
            given_up,
            lambda connection: store.recover_stale(
                connection,
                given_up,
                stale_after=stale_after,
                reason=reason,
                key=message_key(reason),
                visits=self._settings.dead_letter_visits,
                after=self._settings.dead_letter_after,
                limit=CHUNK,
            ),
        )

    async def _recover(self, workers: Sequence[Holder], take: Recover) -> list[RecoveredTask]:
        """In chunks, and delete the workers only then: every held task must keep a known worker."""
        recovered: list[RecoveredTask] = []
        while workers:
            async with self._database.transaction() as connection:
                taken = await take(connection)
                missed = [task.id for task in taken if task.status == "pending"]
                every = await intervals_of(connection, missed, self._settings)
                await store.schedule_next_visits(connection, every)
                await tell(connection, self._settings, [task.id for task in taken])
            recovered += taken
            LEASE_LOSSES.add("recovery", amount=len(taken))
            if len(taken) < CHUNK:
                break
        if workers:
            await self._forget_workers(workers)
        if recovered:
            failed = sum(task.status == "failed" for task in recovered)
            log.warning(
                "recovered tasks of dead workers",
                tasks=len(recovered),
                failed=failed,
                workers=len(workers),
            )
        return recovered
