"""Errors of tasks: grouped by cause, and one by one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from forager.db.cursor import LARGEST_ID, Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotFound
from forager.fetch.domains.service import domain_name, domains_of
from forager.hints import Hint, action
from forager.tasks.causes import (
    ErrorFilter,
    ErrorGroup,
    ErrorRow,
    ErrorType,
)
from forager.tasks.store import errors as store

__all__ = ["ErrorFilter", "ErrorGroup", "ErrorRow"]


def error_filter(
    *,
    domain: str | None = None,
    error_type: str | None = None,
    since: timedelta | None = None,
    message: str | None = None,
    task_id: int | None = None,
) -> ErrorFilter:
    """A checked filter; `message` is that of a group."""
    if error_type is not None and error_type not in list(ErrorType):
        raise InvalidInput(
            f"{error_type!r} is no type of error", hint=f"There are: {', '.join(ErrorType)}."
        )
    return ErrorFilter(
        domain=None if domain is None else domain_name(domain),
        error_type=error_type,
        days=None if since is None else since.total_seconds() / 86400,
        message=message,
        task_id=task_id,
    )


async def group_errors(
    database: Database, wanted: ErrorFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[ErrorGroup]:
    """Errors by domain, type and message, the most frequent first."""
    check_limit(limit)
    offset = decode_number(cursor) or 0
    async with database.connection() as connection:
        meant = await _meant(connection, wanted)
        found = await store.select_groups(connection, meant, limit=limit + 1, offset=offset)
    return page_of(found, limit, lambda _: offset + limit)


async def error_trend(
    database: Database, wanted: ErrorFilter, span: timedelta, *, parts: int = 48
) -> list[int]:
    """Numbers of errors in equal parts of a time span until now, oldest first."""
    async with database.connection() as connection:
        meant = await _meant(connection, wanted)
        rows = await store.count_over_time(
            connection, meant, seconds=span.total_seconds(), parts=parts
        )
    counts = [0] * parts
    for part, errors in rows:
        counts[max(0, part)] += errors
    return counts


async def list_errors(
    database: Database, wanted: ErrorFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[ErrorRow]:
    """Single errors, newest first."""
    check_limit(limit)
    async with database.connection() as connection:
        meant = await _meant(connection, wanted)
        found = await store.select_errors(
            connection, meant, before=decode_number(cursor), limit=limit + 1
        )
    return page_of(found, limit, lambda error: error.id)


async def get_error(database: Database, error_id: int) -> ErrorRow:
    found = None
    if 0 < error_id < LARGEST_ID:
        found = await database.run(store.select_error, error_id)
    if found is None:
        raise NotFound(
            f"there is no error {error_id}",
            hint=Hint("{} lists the newest errors.", action("errors show")),
        )
    return found


async def _meant(connection: Connection, wanted: ErrorFilter) -> ErrorFilter:
    if wanted.domain is None:
        return wanted
    return replace(wanted, domain_ids=tuple(await domains_of(connection, wanted.domain)))
