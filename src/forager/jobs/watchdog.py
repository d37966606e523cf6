"""The watchdog: gives back the jobs of workers that died.

Supervisors notice the death of their own runners at once; this is for supervisors that died.
"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from forager.db.database import Database
from forager.jobs import workers
from forager.jobs.job import Job
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue, log_failure
from forager.jobs.store import moves
from forager.jobs.worker_queue import retry_delays
from forager.logs import get_logger
from forager.metrics.catalog import LEASE_LOSSES
from forager.processes.identity import StaleHeartbeats, has_died
from forager.processes.tree import exists_marked
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("watchdog")


class Watchdog:
    """Returns jobs of dead workers to the queue; any number of processes may run it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._stale = StaleHeartbeats[UUID]()

    def service(self) -> Service:
        """The background service that recovers jobs."""
        return Service(
            name="job recovery",
            every=self._settings.watchdog_interval,
            step=self.run_once,
            first_within=0.0,
        )

    async def run_once(self) -> list[Job]:
        """Recover the jobs of workers that are dead."""
        recovered = [*await self._recover_orphaned(), *await self._recover_stale()]
        for job in recovered:
            LEASE_LOSSES.add("watchdog")
            if job.status is Status.FAILED:
                log_failure(log, job)
                continue
            log.warning(
                "recovered a job of a dead worker",
                job=str(job.id),
                now=job.status.value,
                retry=f"{job.retry_count}/{job.max_retries}",
                lost_runners=job.runner_losses,
            )
        return recovered

    async def _recover_orphaned(self) -> list[Job]:
        """Workers of this machine: whether they are alive can be seen at once."""
        async with self._database.connection() as connection:
            processes = await workers.select_processes(connection)
            dead = [
                worker_id
                for worker_id, process in processes
                # a runner that outlived its supervisor releases its job
                if has_died(process) and not exists_marked(f"{worker_id} ")
            ]
            if not dead:
                return []
            return await moves.recover_orphaned(
                connection,
                worker_ids=dead,
                error="the process of the worker has died",
                **retry_delays(self._settings),
            )

    async def _recover_stale(self) -> list[Job]:
        stale_after = self._settings.stale_after
        async with self._database.connection() as connection:
            stale = dict(await moves.select_stale(connection, stale_after=stale_after))
            dead = self._stale.confirm(stale)
            if not dead:
                return []
            return await moves.recover_stale(
                connection,
                ids=dead,
                heartbeats=[stale[job] for job in dead],
                stale_after=stale_after,
                error=f"worker sent no heartbeat for more than {stale_after:g} s",
                **retry_delays(self._settings),
            )

    async def check_twice(self) -> list[Job]:
        """Recover now; a worker without a process needs two looks."""
        return await self._stale.check_twice(self.run_once, self._settings.heartbeat_interval)

    @property
    def suspects(self) -> int:
        """Jobs whose heartbeats were stale at the last check."""
        return len(self._stale)


CLEANUP_INTERVAL = 3600.0
# how long a worker that ended without unregistering stays in the list
WORKER_MEMORY = 24 * 3600.0


def job_services(database: Database, settings: Settings) -> list[Service]:
    """The background services of jobs: recovery and clean-up."""
    cleanup = partial(delete_old_jobs, database, settings)
    return [
        Watchdog(database, settings).service(),
        Service(name="job cleanup", every=CLEANUP_INTERVAL, step=cleanup),
    ]


async def delete_old_jobs(database: Database, settings: Settings) -> int:
    """Delete finished jobs past their age, and workers that are gone."""
    deleted = await Queue(database, settings).prune()
    if deleted:
        log.info("old jobs deleted", jobs=deleted)
    await database.run(workers.delete_gone, older_than=WORKER_MEMORY)
    return deleted
