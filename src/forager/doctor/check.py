"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from forager.errors import ForagerError


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and what to do about it."""

    name: str
    level: Level
    finding: str
    advice: str | None = None


def ok(name: str, finding: str) -> Check:
    return Check(name, Level.OK, finding)


def warn(name: str, finding: str, advice: str) -> Check:
    return Check(name, Level.WARN, finding, advice)


def fail(name: str, finding: str, advice: str | None = None) -> Check:
    return Check(name, Level.FAIL, finding, advice)


def failed_with(name: str, error: ForagerError) -> Check:
    """What an error says, as a finding."""
    return fail(name, error.message, error.hint)
