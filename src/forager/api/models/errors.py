"""Errors of tasks, and tasks that failed for good."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from forager.api.limits import MAX_BULK
from forager.api.models.values import LARGEST_BIGINT, Order, PlainText, Time, View, example
from forager.errors import ErrorKind, InvalidInput
from forager.tasks import dead_letters as letters
from forager.tasks import errors as values
from forager.tasks.dead_letters import LetterFilter, letter_filter

Host = Annotated[PlainText, Field(min_length=1, max_length=300)]


class TaskErrorGroup(View):
    """Errors of one domain with the same cause; the example is the newest."""

    domain: str | None
    error_type: str
    message: str
    count: int
    first_seen: Time
    last_seen: Time
    example_id: int
    example_url: str | None
    example_message: str

    @classmethod
    def of(cls, group: values.ErrorGroup) -> TaskErrorGroup:
        return cls.model_validate(group)


class TaskError(View):
    """One error; all of its texts are as they came from elsewhere."""

    id: int
    task_id: int | None
    job_id: UUID | None
    domain: str | None
    stage: str
    error_type: str
    error_kind: str
    error_message: str
    url: str | None
    stack_trace: str | None
    occurred_at: Time

    @classmethod
    def of(cls, row: values.ErrorRow) -> TaskError:
        return cls.model_validate(row)


class DeadLetter(View):
    """A task that failed for good."""

    id: int
    task_id: int
    domain: str
    url: str
    stage: str
    error_type: str
    error_kind: str
    error_message: str
    attempts: int
    died_at: Time

    @classmethod
    def of(cls, letter: letters.DeadLetter) -> DeadLetter:
        return cls.model_validate(letter)


class DeadLetterGroup(View):
    """Dead letters of one domain with the same cause."""

    domain: str
    error_kind: str
    message: str
    count: int
    last_died: Time
    example_url: str


class LetterChoice(Order):
    """Which dead letters are meant: all of what is named must fit."""

    model_config = example(cause="timeout", domain="shop.example.org")

    ids: list[Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]] = Field(
        default_factory=list, max_length=MAX_BULK
    )
    cause: ErrorKind | None = None
    domain: Host | None = None
    all: bool = Field(default=False, description="All there are.")

    def filter(self) -> LetterFilter:
        if not (self.ids or self.cause or self.domain or self.all):
            raise InvalidInput(
                "no dead letter was named", hint="Give `ids`, `cause`, `domain` or `all`."
            )
        return letter_filter(ids=self.ids or None, cause=self.cause, domain=self.domain)


NotFoundIds = Annotated[list[int], Field(description="Of the ids, those of no open letter.")]


class RetriedLetters(View):
    retried: int
    not_found: NotFoundIds = Field(default_factory=list)


class DroppedLetters(View):
    dropped: int
    not_found: NotFoundIds = Field(default_factory=list)
