"""A database whose statements belong to one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forager.db.database import Connection, Database, translated_errors


class InTransaction(Database):
    """A database whose statements all belong to the transaction of one connection.

    A transaction begun through it is a savepoint in that one. One user at a time.
    """

    def __init__(self, database: Database, connection: Connection) -> None:
        self.__dict__.update(database.__dict__)
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        with translated_errors():
            yield self._connection
