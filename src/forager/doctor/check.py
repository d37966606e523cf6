"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from forager.doctor.reasons import REASONS
from forager.errors import ForagerError


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and found; if it is not well, why that matters and what to do next."""

    name: str
    level: Level
    finding: str
    advice: str | None = None
    why: str | None = None


def ok(name: str, finding: str) -> Check:
    return Check(name, Level.OK, finding)


def warn(name: str, finding: str, advice: str) -> Check:
    return Check(name, Level.WARN, finding, advice, REASONS[name])


def fail(name: str, finding: str, advice: str | None = None) -> Check:
    return Check(name, Level.FAIL, finding, advice, REASONS[name])


def failed_with(name: str, error: ForagerError) -> Check:
    """What an error says, as a finding."""
    return fail(name, error.message, error.hint)
