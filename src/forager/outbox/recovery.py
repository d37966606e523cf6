"""Recovery of the outbox: release the messages that a process claimed before it died.

The same rule as for jobs and tasks: a process of this machine can be seen to be dead; any other
counts as dead if its heartbeat is stale, and the same at two checks in a row.
"""

from __future__ import annotations

from uuid import UUID

from forager.db.database import Database
from forager.logs import get_logger
from forager.outbox import store
from forager.processes.identity import StaleHeartbeats, has_died
from forager.services.report import select_processes
from forager.services.service import Service
from forager.services.status import ServiceProcess
from forager.settings import Settings

log = get_logger("outbox")

MAX_INTERVAL = 5.0


class OutboxRecovery:
    """Any number of processes may run it."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._stale = StaleHeartbeats[UUID]()

    def service(self) -> Service:
        """The background service that returns messages of dead processes."""
        every = min(MAX_INTERVAL, self._settings.watchdog_interval)
        return Service(name="outbox recovery", every=every, step=self.run_once, first_within=0.0)

    async def run_once(self) -> int:
        """Release messages of dead processes; return their number."""
        async with self._database.connection() as connection:
            claimants = set(await store.select_claimants(connection))
            if not claimants:
                return 0
            processes = await select_processes(connection, stale_after=self._settings.stale_after)
            dead = self._dead([each for each in processes if each.id in claimants])
            released = await store.release_claims(connection, dead) if dead else 0
        if released:
            log.warning("messages of dead processes released", messages=released)
        return released

    def _dead(self, processes: list[ServiceProcess]) -> list[UUID]:
        dead = {each.id for each in processes if each.process and has_died(each.process)}
        stale = {each.id: each.last_seen for each in processes if each.is_gone}
        return sorted(dead.union(self._stale.confirm(stale)))
