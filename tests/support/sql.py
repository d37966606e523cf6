"""Statements of tests: each call runs one statement in its own connection."""

from __future__ import annotations

from typing import Any

from forager.db.database import Database


async def execute(database: Database, statement: Any, *values: object) -> list[Any]:
    """Run a statement; return its rows, if it has any."""
    async with database.connection() as connection:
        cursor = await connection.execute(statement, values or None)
        return await cursor.fetchall() if cursor.description else []


async def fetch_row(database: Database, statement: Any, *values: object) -> tuple[Any, ...]:
    """The first row, which must exist."""
    row: tuple[Any, ...] = (await execute(database, statement, *values))[0]
    return row


async def fetch_value(database: Database, statement: Any, *values: object) -> Any:
    """The first column of the first row; None without a row."""
    found = await execute(database, statement, *values)
    return found[0][0] if found else None
