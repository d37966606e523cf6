"""Recovery: tasks whose worker died go back to the stage they were claimed from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from forager.db.database import Connection, Database
from forager.errors import ErrorKind
from forager.failures.cause import Cause
from forager.jobs.workers import delete_unseen
from forager.logs import get_logger
from forager.metrics.catalog import LEASE_LOSSES
from forager.processes.identity import StaleHeartbeats, has_died
from forager.services.service import Service
from forager.settings import Settings
from forager.tasks.hints import send_hints
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.stages.attempt import Attempt, Stage, StageOfWorker, TaskOutcome, failed
from forager.tasks.stages.settle import MOVE_AFTER, settle
from forager.tasks.store import recovery as store
from forager.tasks.store import stages
from forager.tasks.store.recovery import OLD_ROWS, OrphanedTask, TaskHolder
from forager.tasks.task import RecoveredTask

__all__ = ["OLD_ROWS"]

log = get_logger("recovery")

CHUNK = 1_000
WORKER_DIED = "the process of the worker has died"


class TaskRecovery:
    """Recovers tasks of dead workers; any number of processes may run it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._stale = StaleHeartbeats[UUID]()

    def service(self) -> Service:
        return Service(
            name="task recovery",
            every=self._settings.watchdog_interval,
            step=self.run_once,
            first_within=0.0,
        )

    async def run_once(self) -> list[RecoveredTask]:
        stale_after = self._settings.stale_after
        holders = await self._database.run(store.select_holders, stale_after=stale_after)
        dead = [h for h in holders if h.process is not None and has_died(h.process)]
        stale = {h.id: h for h in holders if h.is_stale and h not in dead}
        given_up = self._stale.confirm({h.id: h.last_seen for h in stale.values()})
        return [
            *await self._recover(dead, WORKER_DIED),
            *await self._recover(
                [stale[id_] for id_ in given_up],
                f"the worker sent no heartbeat for more than {stale_after:g} s",
                stale_after=stale_after,
            ),
        ]

    async def check_twice(self) -> list[RecoveredTask]:
        return await self._stale.check_twice(self.run_once, self._settings.heartbeat_interval)

    async def recover_worker(self, worker_id: UUID) -> list[RecoveredTask]:
        """Recover the tasks of a worker whose process has ended, and delete its row."""
        return await self._recover(await self._holder(worker_id), WORKER_DIED)

    async def release_worker(self, worker_id: UUID, *, reason: str) -> None:
        """Release the tasks of a worker that ended without their fault: none spends a retry."""
        async with self._database.transaction() as connection:
            given = await stages.give_back(connection, worker_id, reason=reason)
            await send_hints(connection, self._settings, given)
        holder = await self._holder(worker_id)
        await self._forget_workers(holder)

    async def _forget_workers(self, workers: Sequence[TaskHolder]) -> None:
        """Delete the rows of dead workers that hold no tasks; this also closes their segments."""
        async with self._database.transaction() as connection:
            holding = await store.select_holding(connection, [worker.id for worker in workers])
            free = [worker for worker in workers if worker.id not in holding]
            await delete_unseen(
                connection, [worker.id for worker in free], [worker.last_seen for worker in free]
            )

    async def _holder(self, worker_id: UUID) -> list[TaskHolder]:
        holders = await self._database.run(
            store.select_holders, stale_after=self._settings.stale_after
        )
        return [holder for holder in holders if holder.id == worker_id]

    async def _recover(
        self, workers: Sequence[TaskHolder], reason: str, *, stale_after: float | None = None
    ) -> list[RecoveredTask]:
        """Recover tasks in chunks, then delete the workers: every leased task needs a known worker.

        With `stale_after`, only workers whose heartbeats are still stale.
        """
        recovered: list[RecoveredTask] = []
        while workers:
            async with self._database.transaction() as connection:
                orphans = await store.lock_orphans(
                    connection, workers, stale_after=stale_after, limit=CHUNK
                )
                taken = await self._settle(connection, orphans, reason)
            recovered += taken
            LEASE_LOSSES.add("recovery", amount=len(taken))
            if len(taken) < CHUNK:
                break
        if workers:
            await self._forget_workers(workers)
        if recovered:
            log.warning(
                "recovered tasks of dead workers",
                tasks=len(recovered),
                failed=sum(task.status == "failed" for task in recovered),
                workers=len(workers),
            )
        return recovered

    async def _settle(
        self, connection: Connection, orphans: Sequence[OrphanedTask], reason: str
    ) -> list[RecoveredTask]:
        """Settle the lost attempts like failed ones, but those with retries left start again."""
        attempts: dict[StageOfWorker, list[Attempt]] = defaultdict(list)
        for task in orphans:
            # how long it was worked on is unknown
            attempt = failed(Attempt(task=task), Cause(ErrorKind.INTERNAL, reason), self._settings)
            if attempt.outcome is TaskOutcome.RETRY:
                attempt = replace(attempt, outcome=TaskOutcome.LOST)
            attempts[StageOfWorker(task.worker_id, Stage.of(task.status))].append(attempt)
        recovered = []
        for who, lost in attempts.items():
            for attempt in await settle(connection, who, lost, self._settings):
                leased, move = attempt.task, MOVE_AFTER[attempt.outcome]
                status = move.steps[TaskStatus(who.stage.status)]
                retries = 0 if move.resets_retries else leased.retry_count + move.spends_retry
                recovered.append(RecoveredTask(leased.id, status, retries, leased.max_retries))
        if recovered:
            await send_hints(connection, self._settings, [task.id for task in recovered])
            await stages.notify_workers(connection)
        return recovered
