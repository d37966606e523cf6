"""A worker's entry in the list of workers: that it is there, and what it has to say."""

from __future__ import annotations

import os
import socket
from uuid import UUID

from forager import __version__
from forager.db.database import Database
from forager.db.schema import SCHEMA_VERSION
from forager.errors import LeaseLost
from forager.jobs import workers
from forager.logs import get_logger
from forager.processes.identity import process_name

log = get_logger("supervisor")


class Registration:
    """`returns`: whether a worker that others have given up for dead may enter itself again."""

    def __init__(
        self,
        database: Database,
        worker_id: UUID,
        *,
        capacity: int,
        role: str = "jobs",
        region: str | None = None,
        returns: bool = True,
    ) -> None:
        self.note: str | None = None
        self._database = database
        self._worker_id = worker_id
        self._capacity = capacity
        self._role = role
        self._region = region
        self._returns = returns
        self._entered = False

    async def renew(self, *, stopping: bool = False) -> None:
        """Show this worker to others, and look whether it still fits the database's schema."""
        state = "stopping" if stopping else "running"
        note = _mismatch(await self._write(state))
        if note == self.note:
            return
        self.note = note
        if note is not None:
            log.error("worker of another schema version", reason=note)
        await self._write(state)

    async def end(self) -> None:
        async with self._database.connection() as connection:
            await workers.unregister(connection, self._worker_id)

    async def _write(self, state: str) -> str | None:
        if self._entered and not self._returns:
            return await self._renew(state)
        version = await self._enter(state)
        self._entered = True
        return version

    async def _renew(self, state: str) -> str | None:
        async with self._database.connection() as connection:
            version = await workers.renew(connection, self._worker_id, state=state, note=self.note)
        if version is None:
            raise LeaseLost("this worker was given up for dead; what it held belongs to others")
        return version

    async def _enter(self, state: str) -> str | None:
        async with self._database.connection() as connection:
            return await workers.register(
                connection,
                worker_id=self._worker_id,
                host=socket.gethostname(),
                pid=os.getpid(),
                process=process_name(),
                version=__version__,
                capacity=self._capacity,
                state=state,
                note=self.note,
                role=self._role,
                region=self._region,
            )


def _mismatch(version: str | None) -> str | None:
    if version == SCHEMA_VERSION:
        return None
    return (
        f"claims nothing: the database has schema {version}, this worker knows {SCHEMA_VERSION};"
        " update and restart it"
    )
