"""Which row of `domains` applies to a host: its own, or that of the nearest domain above it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.db.refusals import isolate_refused
from forager.db.shared_query import SharedQuery
from forager.errors import DatabaseUnavailable
from forager.extract.hosts import base_url, parent_domains
from forager.fetch.budgets import store

PAUSE_AFTER_TROUBLE = 0.5

# ID and name
Row = tuple[int, str]


class HostRows:
    """Looks up the rows of all hosts that are asked for at the same time together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows: SharedQuery[str, Row | Exception] = SharedQuery(self._find_all)

    async def find(self, host: str, deadline: float) -> Row:
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
            await asyncio.sleep(PAUSE_AFTER_TROUBLE)

    async def _find_all(self, hosts: Sequence[str]) -> dict[str, Row | Exception]:
        """The row of each host, or why the database refuses it."""
        rows: dict[str, Row | Exception] = {}

        async def find(some: Sequence[str]) -> None:
            async with self._database.connection() as connection:
                rows.update(await _rows_of(connection, some))

        rows.update(await isolate_refused(hosts, find))
        return rows


async def _rows_of(connection: Connection, hosts: Sequence[str]) -> dict[str, Row]:
    """A host without a row gets one."""
    names = {host: [host, *parent_domains(host)] for host in hosts}
    rows = await store.select_domains(connection, names)
    missing = {host: base_url(host) for host in hosts if host not in rows}
    if missing:
        await store.insert_domains(connection, missing)
        rows = await store.select_domains(connection, names)
    return rows
