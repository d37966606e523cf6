"""Violations: promises that were not kept, each said once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Promise(StrEnum):
    """The six promises, and that work comes to an end at all."""

    NOTHING_LOST = "no page lost"
    COUNTED_ONCE = "none counted twice"
    LEDGER = "the ledger balances"
    ONE_GENERATION = "one published generation"
    ONE_WRITER = "no write by an old lease"
    BUDGET = "no host above its budget"
    MESSAGES = "no message lost"
    SERVICES = "services are restarted"
    DATABASE_TIME = "times are the database's"


@dataclass(frozen=True, slots=True)
class Violation:
    promise: Promise
    what: str


@dataclass(slots=True)
class Violations:
    """All that were found; one that is still there at the next look is not another one."""

    found: dict[Violation, None] = field(default_factory=dict)

    def add(self, promise: Promise, *what: str) -> None:
        for words in what:
            self.found[Violation(promise, words)] = None

    def of(self, promise: Promise) -> list[str]:
        return [each.what for each in self.found if each.promise is promise]

    def __len__(self) -> int:
        return len(self.found)
