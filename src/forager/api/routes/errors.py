"""Task errors, grouped and individually, and permanently failed tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from forager.api.limits import Domain, Limit, Listed, Offset, Paged, RowId, cut, listed
from forager.api.models import LARGEST_BIGINT, PlainText, View
from forager.api.models.tasks import LetterChoice
from forager.api.services import Operates, Reads
from forager.errors import ErrorKind, NotFound
from forager.hints import Hint, action
from forager.tasks import dead_letters as letters
from forager.tasks import errors
from forager.tasks.causes import ErrorType


class TaskErrorGroup(View, row=errors.ErrorGroup):
    """Errors of one domain with the same cause; the example is the newest."""


class TaskError(View, row=errors.ErrorRow):
    """One error; its texts are shown as they were received."""

    job_id: UUID | None


class DeadLetter(View, row=letters.DeadLetter):
    """A permanently failed task."""


class DeadLetterGroup(View, row=letters.LetterGroup):
    """Dead letters of one domain with the same cause."""


NotFoundIds = Annotated[list[int], Field(description="IDs that belong to no open dead letter.")]


class RetriedLetters(View):
    retried: int
    not_found: NotFoundIds = Field(default_factory=list)


class DroppedLetters(View):
    dropped: int
    not_found: NotFoundIds = Field(default_factory=list)


router = APIRouter()

Type = Annotated[ErrorType | None, Query(alias="type")]
Hours = Annotated[
    float | None,
    Query(gt=0, le=87600, allow_inf_nan=False, description="Only errors of the last hours."),
]
Cause = ErrorKind | None


@router.get("/errors", tags=["errors"])
async def list_errors(
    here: Reads,
    paging: Paged,
    domain: Domain = None,
    type_: Type = None,
    hours: Hours = None,
    message: Annotated[
        PlainText | None,
        Query(max_length=2000, description="Only errors with this message, as listed in groups."),
    ] = None,
    task_id: Annotated[int | None, Query(ge=1, le=LARGEST_BIGINT)] = None,
) -> Listed[TaskError]:
    """List individual errors, newest first."""
    wanted = errors.ErrorFilter(
        domain=domain, error_type=type_, since=_age(hours), message=message, task_id=task_id
    )
    page = await errors.list_errors(here.database, wanted, **paging)
    return listed(page, TaskError.of)


@router.get("/errors/groups", tags=["errors"])
async def group_errors(
    here: Reads, paging: Paged, domain: Domain = None, type_: Type = None, hours: Hours = None
) -> Listed[TaskErrorGroup]:
    """List errors by domain, type and message, most frequent first."""
    wanted = errors.ErrorFilter(domain=domain, error_type=type_, since=_age(hours))
    page = await errors.group_errors(here.database, wanted, **paging)
    return listed(page, TaskErrorGroup.of)


@router.get("/errors/{error_id}", tags=["errors"])
async def show_error(error_id: RowId, here: Reads) -> TaskError:
    """Show one error in detail."""
    return TaskError.of(await errors.get_error(here.database, error_id))


@router.get("/dead-letters", tags=["dead letters"])
async def list_letters(
    here: Reads, paging: Paged, cause: Cause = None, domain: Domain = None
) -> Listed[DeadLetter]:
    """List permanently failed tasks that need a decision, newest first."""
    wanted = letters.LetterFilter(cause=cause, domain=domain)
    page = await letters.list_letters(here.database, wanted, **paging)
    return listed(page, DeadLetter.of)


@router.get("/dead-letters/groups", tags=["dead letters"])
async def group_letters(
    here: Reads, cause: Cause = None, domain: Domain = None, limit: Limit = 50, cursor: Offset = 0
) -> Listed[DeadLetterGroup]:
    """List dead letters by cause and domain, most frequent first."""
    wanted = letters.LetterFilter(cause=cause, domain=domain)
    found = await letters.group_letters(here.database, wanted, limit=cursor + limit + 1)
    return listed(cut(found, cursor, limit), DeadLetterGroup.of)


@router.post("/dead-letters/retry", tags=["dead letters"])
async def retry_letters(choice: LetterChoice, here: Operates) -> RetriedLetters:
    """Retry tasks now, with all their retries."""
    wanted = choice.filter()
    unknown = await letters.unknown_letters(here.database, wanted)
    retried = await letters.retry_letters(here.database, wanted)
    return RetriedLetters(retried=retried, not_found=unknown)


@router.post("/dead-letters/drop", tags=["dead letters"])
async def drop_letters(choice: LetterChoice, here: Operates) -> DroppedLetters:
    """Dismiss dead letters; their tasks stay failed."""
    wanted = choice.filter()
    unknown = await letters.unknown_letters(here.database, wanted)
    dropped = await letters.drop_letters(here.database, wanted)
    return DroppedLetters(dropped=dropped, not_found=unknown)


@router.post("/dead-letters/{letter_id}/retry", tags=["dead letters"])
async def retry_letter(letter_id: RowId, here: Operates) -> RetriedLetters:
    """Retry one task now."""
    wanted = letters.LetterFilter(ids=[letter_id])
    return RetriedLetters(
        retried=_one(letter_id, await letters.retry_letters(here.database, wanted))
    )


@router.delete("/dead-letters/{letter_id}", tags=["dead letters"])
async def drop_letter(letter_id: RowId, here: Operates) -> DroppedLetters:
    """Dismiss one dead letter."""
    wanted = letters.LetterFilter(ids=[letter_id])
    return DroppedLetters(
        dropped=_one(letter_id, await letters.drop_letters(here.database, wanted))
    )


def _one(letter_id: int, done: int) -> int:
    if not done:
        raise NotFound(
            f"there is no open dead letter {letter_id}",
            hint=Hint("{} lists dead letters.", action("dead-letters list")),
        )
    return done


def _age(hours: float | None) -> timedelta | None:
    return None if hours is None else timedelta(hours=hours)
