"""Violations of promises, without duplicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Promise(StrEnum):
    """The six promises, isolated jobs, services that are restarted, and correct timestamps."""

    NOTHING_LOST = "no page lost"
    COUNTED_ONCE = "none counted twice"
    FETCHED_ONCE = "only pages in flight fetched again"
    LEDGER = "the ledger balances"
    ONE_GENERATION = "one published generation"
    ONE_WRITER = "no write by an old lease"
    BUDGET = "no host above its budget"
    MESSAGES = "no message lost"
    RETRIES = "no retry spent for the loss of a shared runner"
    SERVICES = "services are restarted"
    DATABASE_TIME = "timestamps come from the database"


@dataclass(frozen=True, slots=True)
class Violation:
    promise: Promise
    what: str


@dataclass(slots=True)
class Violations:
    """All violations; one that persists until the next check is not counted again."""

    found: dict[Violation, None] = field(default_factory=dict)

    def add(self, promise: Promise, *what: str) -> None:
        for message in what:
            self.found[Violation(promise, message)] = None

    def of(self, promise: Promise) -> list[str]:
        return [each.what for each in self.found if each.promise is promise]

    def __len__(self) -> int:
        return len(self.found)
