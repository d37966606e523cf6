"""The right to send one request, and the reasons for which there is none."""

from __future__ import annotations

from typing import Protocol, Self

from forager.errors import ErrorKind, GiveUp, Retry


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
            hint=f"`forager domains enable {domain}` allows it again.",
        )
        self.domain = domain


class Account(Protocol):
    """Where a slot came from."""

    slow_delay: float

    def give_back(self) -> None: ...
    def note_success(self, seconds: float) -> None: ...
    def note_failure(self) -> None: ...
    def note_slow_down(self, retry_after: float | None, seen: float) -> None: ...


class Slot:
    """One request may be sent now. Use it as a context manager, or call `release` at the end."""

    __slots__ = ("_account", "_open", "_seen", "granted_at")

    def __init__(self, account: Account, granted_at: float) -> None:
        self.granted_at = granted_at
        self._account = account
        self._seen = account.slow_delay
        self._open = True

    def succeeded(self, seconds: float) -> None:
        """The host answered, after so long; a host that was slowed down recovers by this."""
        self._account.note_success(seconds)

    def failed(self) -> None:
        """There was no usable answer."""
        self._account.note_failure()

    def slow_down(self, retry_after: float | None) -> None:
        """The host asked for fewer requests: 429, 503, or anything with Retry-After."""
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
