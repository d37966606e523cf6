"""Messages of the outbox: lanes, failures and retry policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.backoff import backoff


@dataclass(frozen=True, slots=True)
class Lane:
    """Messages that are claimed together: a topic, a webhook, a band of priorities."""

    topic: str
    number: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A claimed message; `attempts` counts those before this one."""

    id: int
    topic: str
    lane: int
    ref_id: int
    payload: Sequence[int] | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A message that was not taken, and the seconds until its next attempt; None: give it up."""

    message_id: int
    error: str
    wait: float | None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits between attempts, in seconds: doubling up to `longest`, with jitter."""

    first: float
    longest: float
    max_attempts: int | None = None

    def failure(self, message: Message, error: str) -> Failure:
        """When a message is sent again after this error, or that it is not."""
        attempts = message.attempts + 1
        if self.max_attempts is not None and attempts >= self.max_attempts:
            return Failure(message.id, error, None)
        return Failure(message.id, error, backoff(attempts, self.first, self.longest))


@dataclass(frozen=True, slots=True)
class OutboxBacklog:
    """Messages that wait for their first attempt, and those that were refused."""

    waiting: int
    oldest_seconds: float
    refused: int
