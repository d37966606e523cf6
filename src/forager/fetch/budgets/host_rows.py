"""The row of `domains` that applies to a host: its own, or that of its nearest parent domain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.db.refusals import isolate_refused
from forager.db.shared_query import SharedQuery
from forager.errors import DatabaseUnavailable
from forager.fetch.domains.store import CoveringDomain, insert_domains, select_covers

PAUSE_AFTER_ERROR = 0.5


class HostRows:
    """Looks up the rows of concurrently requested hosts in one query."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: SharedQuery[str, CoveringDomain | Exception] = SharedQuery(self._find_all)

    async def find(self, host: str, deadline: float) -> CoveringDomain:
        """The row of a host; waits for a database that is unavailable until the deadline."""
        while True:
            try:
                found = await self._rows.find(host)
            except DatabaseUnavailable:
                if local_time() >= deadline:
                    raise
            else:
                if isinstance(found, Exception):
                    raise found
                if found is not None:
                    return found
            await asyncio.sleep(PAUSE_AFTER_ERROR)

    async def _find_all(self, hosts: Sequence[str]) -> dict[str, CoveringDomain | Exception]:
        """The row of each host, or the error with which the database rejects it."""
        rows: dict[str, CoveringDomain | Exception] = {}

        async def find(some: Sequence[str]) -> None:
            rows.update(await self._database.run(_covers, some))

        rows.update(await isolate_refused(hosts, find))
        return rows


async def _covers(connection: Connection, hosts: Sequence[str]) -> dict[str, CoveringDomain]:
    """The row of each host; a host without one gets a row."""
    covers = await select_covers(connection, hosts)
    if missing := [host for host in hosts if host not in covers]:
        await insert_domains(connection, missing)
        covers = await select_covers(connection, hosts)
    return covers
