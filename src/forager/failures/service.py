"""Errors of tasks and jobs: grouped by cause, and one by one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from uuid import UUID

from forager.db.cursor import LARGEST_ID, Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotFound
from forager.failures import store
from forager.failures.cause import ErrorType, cause_of
from forager.failures.store import OLD_ERRORS, ErrorGroup, ErrorRow, insert_errors
from forager.fetch.domains.service import domains_of
from forager.hints import Hint, action

__all__ = ["OLD_ERRORS", "ErrorFilter", "ErrorGroup", "ErrorRow", "insert_errors"]


@dataclass(frozen=True, slots=True)
class ErrorFilter:
    """Conditions on errors; None: any. `message` is that of a group.

    `user_id` leaves out the errors of jobs of other owners. Tasks have no owner.
    """

    domain: str | None = None
    error_type: str | None = None
    since: timedelta | None = None
    message: str | None = None
    task_id: int | None = None
    user_id: UUID | None = None

    def __post_init__(self) -> None:
        if self.error_type is not None and self.error_type not in list(ErrorType):
            raise InvalidInput(
                f"{self.error_type!r} is no type of error",
                hint=f"There are: {', '.join(ErrorType)}.",
            )

    async def parameters(self, connection: Connection) -> store.Conditions:
        """The filter as parameters of a statement."""
        ids = None if self.domain is None else await domains_of(connection, self.domain)
        return {**asdict(self), "domain_ids": ids}


async def record_job_error(database: Database, job_id: UUID, error: Exception) -> None:
    """Log the error that ended a job."""
    await database.run(store.insert_job_error, job_id, cause_of(error), None)


async def group_errors(
    database: Database, wanted: ErrorFilter, *, cursor: str | None = None, limit: int = 50
) -> Page[ErrorGroup]:
    """Errors by domain, type and message, the most frequent first."""
    check_limit(limit)
    offset = decode_number(cursor) or 0
    async with database.connection() as connection:
        meant = await wanted.parameters(connection)
        found = await store.select_groups(connection, meant, limit=limit + 1, offset=offset)
    return page_of(found, limit, lambda _: offset + limit)


async def error_trend(
    database: Database, wanted: ErrorFilter, span: timedelta, *, parts: int = 48
) -> list[int]:
    """Numbers of errors in equal parts of a time span until now, oldest first."""
    async with database.connection() as connection:
        meant = await wanted.parameters(connection)
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
        meant = await wanted.parameters(connection)
        found = await store.select_errors(
            connection, meant, before=decode_number(cursor), limit=limit + 1
        )
    return page_of(found, limit, lambda error: error.id)


async def get_error(database: Database, error_id: int, *, user_id: UUID | None = None) -> ErrorRow:
    """An error by its ID that the owner may see; raises NotFound."""
    if 0 < error_id < LARGEST_ID:
        wanted = ErrorFilter(user_id=user_id)
        found = await list_errors(database, wanted, cursor=str(error_id + 1), limit=1)
        if found.items and found.items[0].id == error_id:
            return found.items[0]
    raise NotFound(
        f"there is no error {error_id}",
        hint=Hint("{} lists the newest errors.", action("errors list")),
    )
