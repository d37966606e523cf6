"""Slots: the right to send one request, or the reason why there is none."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Self

from forager.errors import ErrorKind, GiveUp, Retry
from forager.hints import Hint, action

if TYPE_CHECKING:
    from forager.fetch.budgets.accounts import DomainAccount
    from forager.fetch.budgets.exchange import PairReservation, Reservation, ServerClock
    from forager.fetch.budgets.terms import CrawlTerms

TOO_MANY_REQUESTS = 429


class HostThrottled(Retry):
    """The next slot of the host is later than the caller would wait."""

    def __init__(self, host: str, seconds: float, reason: str) -> None:
        super().__init__(
            f"{host} may be asked again in {seconds:.1f} s: {reason}", kind=ErrorKind.NOT_ALLOWED
        )
        self.host = host
        self.seconds = seconds
        self.reason = reason


class DomainInactive(GiveUp):
    """Requests to the domain are not allowed, by its setting."""

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"the domain {domain} is not active",
            kind=ErrorKind.NOT_ALLOWED,
            hint=Hint("{} allows requests again.", action("domains enable", domain)),
        )
        self.domain = domain


class Slot:
    """The right to send one request. Use it as a context manager, or call `release` at the end."""

    __slots__ = ("_account", "_open", "_seen", "_terms", "granted_at")

    def __init__(self, account: DomainAccount, granted_at: float, terms: CrawlTerms) -> None:
        self.granted_at = granted_at
        self._account = account
        self._terms = terms
        self._seen = account.slow_delay
        self._open = True

    def answered(self, status: int, retry_after: float | None, *, is_retry: bool = False) -> None:
        """Report the status of the response. `is_retry`: the URL has failed before."""
        if status == TOO_MANY_REQUESTS or (status >= 400 and retry_after):
            self.slow_down(retry_after)
        elif status >= 500:
            self.failed(is_retry=is_retry)
        else:
            self.succeeded()

    def record(self, status: int | None, seconds: float = 0.0) -> None:
        """Add the request to the history of the host; without a status it got no answer."""
        self._account.record(status, seconds)

    def succeeded(self) -> None:
        """Report a response; a slowed-down host recovers by it."""
        self._account.note_success()

    def failed(self, *, is_retry: bool = False) -> None:
        """Report an error; many errors slow the host down, a single one does not."""
        self._account.note_error(self._seen, is_retry=is_retry)

    def slow_down(self, retry_after: float | None) -> None:
        """Report that the host limits requests: 429, or any failure with Retry-After."""
        self._account.note_slow_down(retry_after, self._seen)

    def release(self) -> None:
        """Return the connection; further calls have no effect."""
        if self._open:
            self._open = False
            self._account.give_back(self._terms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


LATENESS = 0.1
"""How much of a delay a request may be late, and at most how many seconds."""


@dataclass(slots=True)
class SlotWindow:
    """Consecutive slots: `due` is the next one, `last` the last, in local time."""

    due: float
    last: float
    delay: float
    # the database's time of `due` minus `due`
    offset: float = 0.0

    @classmethod
    def reserved(
        cls, clock: ServerClock, given: Reservation | PairReservation, slack: float
    ) -> Self:
        """A window in local time, shortened at both ends by the uncertainty of the clocks."""
        ends_at = given.starts_at + (given.slots - 1) * given.delay + slack
        due = clock.latest(given.starts_at)
        return cls(due, clock.earliest(ends_at), given.delay, given.starts_at - due)

    @property
    def lateness(self) -> float:
        return min(LATENESS, LATENESS * self.delay)

    def has_expired(self, now: float) -> bool:
        return now > self.last + self.lateness

    @property
    def is_over(self) -> bool:
        return self.due > self.last + self.lateness


class RequestLane:
    """One sequence of requests that keep their distance: a domain's, or a (domain, proxy) pair's.

    Slots that are not used in time are lost: a frozen or busy process finds its windows expired
    and cannot catch up. Two requests are never closer than the delay less the lateness.
    """

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: deque[SlotWindow] = deque()

    def add(self, window: SlotWindow) -> None:
        self._windows.append(window)

    def ready_at(self, now: float) -> float:
        """When the next request may be sent; inf if nothing is reserved."""
        windows = self._windows
        while windows:
            window = windows[0]
            if not window.is_over and not window.has_expired(now):
                return window.due
            windows.popleft()
        return inf

    def use(self, now: float) -> None:
        """Use the next slot."""
        window = self._windows[0]
        window.due = max(window.due, now - window.lateness) + window.delay

    def clear(self) -> None:
        self._windows.clear()

    def slots_left(self) -> int:
        """Slots that are reserved and not used."""
        return sum(_slots_in(window) for window in self._windows)

    def drop(self, *, before: float = 0.0, faster_than: float = 0.0) -> None:
        """Drop windows that a slow-down made invalid."""
        kept = [w for w in self._windows if w.due >= before and w.delay >= faster_than]
        self._windows = deque(kept)


def _slots_in(window: SlotWindow) -> int:
    if window.is_over:
        return 0
    return 1 + int((window.last + window.lateness - window.due) / window.delay)
