"""Is the database there, and at the schema this Forager needs?"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.rows import scalar_row

from forager.db.database import Database
from forager.db.schema import SCHEMA_VERSION
from forager.errors import DatabaseUnavailable

PATIENCE = 3.0


@dataclass(frozen=True, slots=True)
class Readiness:
    database: bool
    schema: str | None
    expected_schema: str = SCHEMA_VERSION

    @property
    def ready(self) -> bool:
        return self.database and self.schema == self.expected_schema


async def readiness(database: Database) -> Readiness:
    try:
        async with database.answering_within(PATIENCE).connection() as connection:
            cursor = connection.cursor(row_factory=scalar_row)
            await cursor.execute("SELECT version_num FROM alembic_version")
            return Readiness(True, await cursor.fetchone())
    except psycopg.errors.UndefinedTable:
        return Readiness(True, None)
    except DatabaseUnavailable:
        return Readiness(False, None)
