"""The right to send one request, and the reasons for which there is none."""

from __future__ import annotations

from typing import Protocol, Self

from forager.errors import ErrorKind, GiveUp, Retry
from forager.hints import Hint, action

TOO_MANY_REQUESTS = 429


class HostResting(Retry):
    """The host may not be asked for longer than the caller would wait."""

    def __init__(self, host: str, seconds: float, reason: str) -> None:
        super().__init__(
            f"{host} may be asked again in {seconds:.1f} s: {reason}", kind=ErrorKind.NOT_ALLOWED
        )
        self.host = host
        self.seconds = seconds
        self.reason = reason


class DomainInactive(GiveUp):
    """A person has switched the domain off."""

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"the domain {domain} is not active",
            kind=ErrorKind.NOT_ALLOWED,
            hint=Hint("{} allows requests again.", action("domains enable", domain)),
        )
        self.domain = domain


class Account(Protocol):
    """Where a slot came from."""

    slow_delay: float

    def give_back(self) -> None: ...
    def note_success(self, seconds: float) -> None: ...
    def note_error(self, seen: float, *, is_retry: bool) -> None: ...
    def note_slow_down(self, retry_after: float | None, seen: float) -> None: ...


class Slot:
    """One request may be sent now. Use it as a context manager, or call `release` at the end."""

    __slots__ = ("_account", "_open", "_seen", "granted_at")

    def __init__(self, account: Account, granted_at: float) -> None:
        self.granted_at = granted_at
        self._account = account
        self._seen = account.slow_delay
        self._open = True

    def answered(
        self, status: int, seconds: float, retry_after: float | None, *, is_retry: bool = False
    ) -> None:
        """Report the status of the answer. `is_retry`: the URL has failed before."""
        if status == TOO_MANY_REQUESTS or (status >= 400 and retry_after):
            self.slow_down(retry_after)
        elif status >= 500:
            self.failed(is_retry=is_retry)
        else:
            self.succeeded(seconds)

    def succeeded(self, seconds: float) -> None:
        """The host answered after this many seconds; a slowed-down host recovers by this."""
        self._account.note_success(seconds)

    def failed(self, *, is_retry: bool = False) -> None:
        """The server failed or did not answer. Many of these slow the host down, one does not."""
        self._account.note_error(self._seen, is_retry=is_retry)

    def slow_down(self, retry_after: float | None) -> None:
        """The host asked for fewer requests: 429, or any failure with Retry-After."""
        self._account.note_slow_down(retry_after, self._seen)

    def release(self) -> None:
        """Give the connection back; more than once does no harm."""
        if self._open:
            self._open = False
            self._account.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
