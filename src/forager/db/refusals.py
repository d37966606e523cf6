"""Rows that PostgreSQL rejects for their content: found by bisection, so that the others stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import psycopg

from forager.db.database import TOO_LARGE
from forager.errors import LeaseLost

# errors by which PostgreSQL or the driver rejects the content of a row
REFUSALS = (psycopg.DataError, psycopg.IntegrityError, *TOO_LARGE, UnicodeError)

Item = TypeVar("Item")


async def isolate_refused(
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], Awaitable[None]],
    refusals: tuple[type[Exception], ...] = REFUSALS,
) -> list[tuple[Item, Exception]]:
    """Write all items together; if that is refused, in halves, down to those refused alone.

    Each call of `write` is a transaction (or a savepoint) of everything that its items bring, so
    it does not matter which statement refuses.
    """
    if not items:
        return []
    try:
        await write(items)
    except LeaseLost:
        raise
    except refusals as error:
        if len(items) == 1:
            return [(items[0], error)]
        middle = len(items) // 2
        return [
            *await isolate_refused(items[:middle], write, refusals),
            *await isolate_refused(items[middle:], write, refusals),
        ]
    return []
