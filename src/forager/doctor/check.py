"""Checks of the doctor and their findings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import ParamSpec

from forager.errors import DatabaseUnavailable, ForagerError

Arguments = ParamSpec("Arguments")


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its finding; for a problem also why it matters and what to do."""

    name: str
    level: Level
    finding: str
    advice: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    level: Level
    finding: str
    advice: str | None


def warn(finding: str, advice: str) -> Problem:
    return Problem(Level.WARN, finding, advice)


def fail(finding: str, advice: str | None = None) -> Problem:
    return Problem(Level.FAIL, finding, advice)


def failed_with(error: ForagerError) -> Problem:
    return fail(error.message, None if error.hint is None else str(error.hint))


# the finding of a check that has found no problem is its text
Verdict = str | Problem


class check:  # noqa: N801 - a decorator
    """Declare a check with its name, and why a problem that it finds matters.

    An error that it raises is its finding, unless the database is unavailable: that ends the
    examination.
    """

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why

    def found(self, verdict: Verdict) -> Check:
        if isinstance(verdict, str):
            return Check(self.name, Level.OK, verdict)
        return Check(self.name, verdict.level, verdict.finding, verdict.advice, self.why)

    def __call__(
        self, examine: Callable[Arguments, Verdict | Awaitable[Verdict]]
    ) -> Callable[Arguments, Awaitable[Check]]:
        @wraps(examine)
        async def checked(*args: Arguments.args, **options: Arguments.kwargs) -> Check:
            try:
                verdict = examine(*args, **options)
                return self.found(verdict if isinstance(verdict, Verdict) else await verdict)
            except DatabaseUnavailable:
                raise
            except ForagerError as error:
                return self.found(failed_with(error))

        return checked


SETTINGS = check("settings", "An invalid setting does not have the intended effect.")
DATABASE = check("database", "All state is kept in this database.")
