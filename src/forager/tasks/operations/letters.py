"""Operations on dead letters: tasks that failed permanently."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from forager.errors import ErrorKind, InvalidInput
from forager.hints import Hint, Option
from forager.operations.models import (
    MAX_BULK,
    Limit,
    Listed,
    Offset,
    OnlyDomain,
    Paging,
    RequestModel,
    ResponseModel,
    RowId,
    cut,
    example,
    listed,
)
from forager.operations.operation import Columns, Context, Group
from forager.tasks import dead_letters as letters
from forager.tasks.dead_letters import LetterFilter

dead_letters = Group(
    "dead-letters", "Tasks that failed permanently: list by cause, retry, or dismiss.", "Errors"
)

Cause = Annotated[ErrorKind, Field(description="Only this cause, such as timeout.")]
LetterId = Annotated[RowId, Field(description="ID of the dead letter.")]
NotFoundIds = Annotated[list[int], Field(description="IDs that belong to no open dead letter.")]


_ABOUT_DEAD_LETTER = {
    "attempts": "Attempts that were made.",
    "died_at": "When the task failed permanently.",
    "url": "URL of the task.",
    "error_message": "Message of the last error.",
}


class DeadLetter(ResponseModel, row=letters.DeadLetter, about=_ABOUT_DEAD_LETTER):
    """A permanently failed task."""


_ABOUT_DEAD_LETTER_GROUP = {
    "last_died": "When the newest task of the group failed.",
    "count": "Number of dead letters in the group.",
    "message": "Message that the errors have in common.",
}


class DeadLetterGroup(ResponseModel, row=letters.LetterGroup, about=_ABOUT_DEAD_LETTER_GROUP):
    """Dead letters of one domain with the same cause."""


class RetriedLetters(ResponseModel):
    """How many tasks are retried."""

    retried: int = Field(description="Number of retried tasks.")
    not_found: NotFoundIds = Field(default_factory=list)


class DroppedLetters(ResponseModel):
    """How many dead letters were dismissed."""

    dropped: int = Field(description="Number of dismissed dead letters.")
    not_found: NotFoundIds = Field(default_factory=list)


class LetterChoice(RequestModel):
    """A selection of dead letters; all given conditions must match."""

    model_config = example(cause="timeout", domain="shop.example.org")

    ids: list[RowId] = Field(
        default_factory=list, max_length=MAX_BULK, description="IDs of dead letters."
    )
    cause: Cause | None = None
    domain: OnlyDomain | None = None
    all: bool = Field(default=False, description="Select all dead letters.")

    def check(self) -> None:
        self.filter()

    def filter(self) -> LetterFilter:
        if not (self.ids or self.cause or self.domain or self.all):
            names = (Option(name) for name in ("cause", "domain", "all"))
            hint = Hint("Give IDs, {}, {} or {}.", *names)
            raise InvalidInput("no dead letter was selected", hint=hint)
        return LetterFilter(ids=self.ids or None, cause=self.cause, domain=self.domain)


LETTER_COLUMNS: Columns = {
    "ID>": "id",
    "TASK>": "task_id",
    "CAUSE": "error_kind",
    "TRIES>": "attempts",
    "DIED": "died_at",
    "MESSAGE…": "error_message",
    "URL…": "url",
}
GROUP_COLUMNS: Columns = {
    "COUNT>": "count",
    "CAUSE": "error_kind",
    "DOMAIN": "domain",
    "LAST": "last_died",
    "MESSAGE…": "message",
    "EXAMPLE…": "example_url",
}
NONE = "There are no such dead letters."


@dead_letters.operation("list", "GET /dead-letters", columns=LETTER_COLUMNS, none=NONE)
async def list_letters(
    context: Context, paging: Paging, cause: Cause | None = None, domain: OnlyDomain | None = None
) -> Listed[DeadLetter]:
    """List permanently failed tasks that need a decision, newest first."""
    wanted = LetterFilter(cause=cause, domain=domain)
    page = await letters.list_letters(context.database, wanted, **paging)
    return listed(page, DeadLetter.of)


@dead_letters.operation("groups", "GET /dead-letters/groups", columns=GROUP_COLUMNS, none=NONE)
async def group_letters(
    context: Context,
    cause: Cause | None = None,
    domain: OnlyDomain | None = None,
    limit: Limit = 50,
    cursor: Offset = 0,
) -> Listed[DeadLetterGroup]:
    """List dead letters by cause and domain, most frequent first."""
    wanted = LetterFilter(cause=cause, domain=domain)
    found = await letters.group_letters(context.database, wanted, limit=cursor + limit + 1)
    return listed(cut(found, cursor, limit), DeadLetterGroup.of)


@dead_letters.operation(
    "retry",
    "POST /dead-letters/retry",
    arguments=("ids",),
    done="tasks retried: {retried}",
    button="Retry",
)
async def retry_letters(context: Context, choice: LetterChoice) -> RetriedLetters:
    """Retry tasks now, with all their retries."""
    wanted = choice.filter()
    unknown = await letters.unknown_letters(context.database, wanted)
    retried = await letters.retry_letters(context.database, wanted)
    return RetriedLetters(retried=retried, not_found=unknown)


@dead_letters.operation("retry", "POST /dead-letters/{letter_id}/retry", command=False)
async def retry_letter(context: Context, letter_id: LetterId) -> RetriedLetters:
    """Retry one task now."""
    wanted = LetterFilter(ids=[letter_id])
    done = await letters.retry_letters(context.database, wanted)
    return RetriedLetters(retried=_one(letter_id, done))


@dead_letters.operation(
    "drop",
    "POST /dead-letters/drop",
    arguments=("ids",),
    confirm=lambda given: not given.get("ids"),
    done="dead letters dropped: {dropped}",
)
async def drop_letters(context: Context, choice: LetterChoice) -> DroppedLetters:
    """Dismiss dead letters; their tasks stay failed."""
    wanted = choice.filter()
    unknown = await letters.unknown_letters(context.database, wanted)
    dropped = await letters.drop_letters(context.database, wanted)
    return DroppedLetters(dropped=dropped, not_found=unknown)


@dead_letters.operation("drop", "DELETE /dead-letters/{letter_id}", command=False)
async def drop_letter(context: Context, letter_id: LetterId) -> DroppedLetters:
    """Dismiss one dead letter."""
    wanted = LetterFilter(ids=[letter_id])
    done = await letters.drop_letters(context.database, wanted)
    return DroppedLetters(dropped=_one(letter_id, done))


def _one(letter_id: int, done: int) -> int:
    if not done:
        raise letters.no_such_letter(letter_id)
    return done
