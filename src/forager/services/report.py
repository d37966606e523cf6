"""The report: what other processes can see of the services that a process runs."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import orjson
from pydantic import TypeAdapter

from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.outages import TRANSIENT_ERRORS
from forager.errors import DatabaseUnavailable
from forager.services import store
from forager.services.service import Service
from forager.services.status import ProcessIdentity, ServiceProcess, ServiceState, ServiceStatus
from forager.services.store import select_processes
from forager.services.supervisor import ServiceSupervisor, running
from forager.settings import Settings

__all__ = ["select_processes"]

WRITE_LIMIT = 2.0
# a process that started this one and has missed this many reports is not responding
SILENT_REPORTS = 3

_STATUSES = TypeAdapter(list[ServiceStatus])


def identify(command: str, process: str | None) -> ProcessIdentity:
    """What a process reports about itself."""
    return ProcessIdentity(
        id=new_id(), command=command, host=socket.gethostname(), pid=os.getpid(), process=process
    )


@asynccontextmanager
async def run_services(
    database: Database, settings: Settings, identity: ProcessIdentity, services: Iterable[Service]
) -> AsyncIterator[None]:
    """Run services for as long as the block runs, and report their status."""
    # before any of them claims something in the name of this process
    with suppress(*TRANSIENT_ERRORS, TimeoutError):
        async with asyncio.timeout(WRITE_LIMIT):
            await _write(database, identity, [])
    supervisors: list[ServiceSupervisor] = []

    async def report() -> None:
        try:
            await _write(database, identity, supervisors[0].statuses)
        except DatabaseUnavailable:
            await database.revive()
            raise

    reporting = Service(
        name="service report", every=settings.heartbeat_interval, step=report, first_within=1.0
    )
    async with running([*services, reporting]) as supervisor:
        supervisors.append(supervisor)
        yield
    with suppress(*TRANSIENT_ERRORS, TimeoutError):
        async with asyncio.timeout(WRITE_LIMIT), database.connection() as connection:
            await store.delete_process(connection, identity.id)


async def list_service_processes(database: Database, settings: Settings) -> list[ServiceProcess]:
    """All processes that run background services, with the state of each service."""
    return await _list(database, stale_after=settings.stale_after)


async def _list(database: Database, *, stale_after: float) -> list[ServiceProcess]:
    rows = await database.run(store.select_processes, stale_after=stale_after)
    return [replace(row, services=_STATUSES.validate_python(row.services)) for row in rows]


async def statuses_of_process(
    database: Database, settings: Settings, process: str | None
) -> list[ServiceStatus]:
    """The services of a process by its name, which may run none.

    One that has not reported for too long counts as one whose event loop is blocked.
    """
    statuses: list[ServiceStatus] = []
    stale_after = SILENT_REPORTS * settings.heartbeat_interval
    for each in await _list(database, stale_after=stale_after):
        if process is not None and each.process == process:
            name = f"{each.command} process"
            silent = ServiceStatus(name=name, every=0.0, state=ServiceState.STUCK)
            statuses += [silent] if each.is_gone else each.services
    return statuses


async def _write(
    database: Database, identity: ProcessIdentity, statuses: list[ServiceStatus]
) -> None:
    services = orjson.loads(orjson.dumps(statuses))
    await database.run(store.upsert_process, identity, services)
