"""The messages between a runner and the database about one domain's budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

ANSWERS_REMEMBERED = 20
"""The error share of a host is a moving average over about as many answers."""
PAIR_DELAY = 0.2
"""Seconds between requests of a (domain, proxy) pair whose domain sets no rate."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Responses of a host since the last report."""

    good: int = 0
    # server errors, timeouts and connection errors of URLs fetched for the first time
    errors: int = 0
    # of URLs that failed before: these say little about the host
    repeated_errors: int = 0
    # the largest extra delay of a failed request
    seen: float = -1.0

    def plus(self, other: Answers) -> Answers:
        return Answers(
            self.good + other.good,
            self.errors + other.errors,
            self.repeated_errors + other.repeated_errors,
            max(self.seen, other.seen),
        )


@dataclass(frozen=True, slots=True)
class ReturnedSlots:
    """Reserved slots that will not be used; times of the database."""

    unused_from: float
    reserved_until: float


NO_RETURNED_SLOTS = ReturnedSlots(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The report and request of a runner for one domain; times in seconds."""

    domain_id: int
    # the options of the crawl, and the Crawl-delay of robots.txt
    delay: float
    concurrency: int
    robots_delay: float
    direct: int  # slots for requests without a proxy
    proxied: Mapping[int, int]  # slots by proxy
    max_wait: float  # a slot further away than this is not reserved
    busy: int  # connections that stay open in any case
    answers: Answers
    # additional seconds that pass before the response arrives
    slack: float = 0.0
    waiting: int = 0  # pages that wait for a slot or a connection
    returned: ReturnedSlots | None = None
    block_for: float = 0.0  # the host sent a Retry-After
    # the extra delay at which the host limited requests without a Retry-After
    refused_under: float | None = None
    leaves: bool = False  # the last exchange: the permits go back

    def as_json(self) -> dict[str, Any]:
        # not `asdict`, which copies each value: runners exchange for hundreds of hosts at a time
        values = {name: getattr(self, name) for name in _PLAIN}
        answers, returned = self.answers, self.returned or NO_RETURNED_SLOTS
        judging = answers.good + answers.errors
        return {
            **values,
            **{name: getattr(answers, name) for name in _OF_ANSWERS},
            "unused_from": returned.unused_from,
            "reserved_until": returned.reserved_until,
            "proxied": sum(self.proxied.values()),
            # each response changes the share of errors by one part of those that are remembered
            "kept_share": (1 - 1 / ANSWERS_REMEMBERED) ** judging,
            "new_share": answers.errors / judging if judging else 0.0,
        }


_OF_ANSWERS = tuple(field.name for field in fields(Answers))
_PLAIN = tuple(
    field.name
    for field in fields(SlotRequest)
    if field.name not in ("answers", "returned", "proxied")
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """The response of the database; times are its own, in seconds since the epoch."""

    domain_id: int
    is_active: bool
    per_proxy_only: bool
    delay: float
    pair_delay: float
    slow_delay: float
    blocked_until: float | None
    starts_at: float
    slots: int  # 0: none were wanted, none are needed, or the first is too far away
    permits: int
    limit: int
    has_own_limit: bool  # whether the limit is a setting of the domain
    expires_at: float
    reserved_until: float  # the end of all reservations of the domain
    others_waiting: int  # other runners whose pages wait


@dataclass(frozen=True, slots=True)
class PairReservation:
    """Slots of a domain that were reserved for one proxy."""

    domain_id: int
    proxy_id: int
    delay: float
    starts_at: float
    slots: int


DRIFT = 1e-4
"""How much faster one clock may run than the other."""


class ServerClock:
    """Translates the database's times into local ones, with both ends of the uncertainty.

    A time that the server sent between `sent` and `received` bounds the difference of the clocks.
    The bounds of many round trips together are far tighter than a slow one alone, and a round trip
    during which this process was frozen adds nothing wrong.
    """

    __slots__ = ("_high", "_low", "_round_trip", "_seen")

    def __init__(self) -> None:
        self._low = float("-inf")
        self._high = float("inf")
        self._seen = 0.0
        self._round_trip = 0.0

    def observe(self, sent: float, received: float, said: float) -> None:
        """Compare the clocks by one exchange; the bounds become narrower."""
        low, high = sent - said, received - said
        slack = DRIFT * (received - self._seen)
        self._low = max(self._low - slack, low)
        self._high = min(self._high + slack, high)
        self._seen = received
        # weighted toward the last one; a very slow one is remembered for a while
        self._round_trip = max(received - sent, self._round_trip / 2)
        if self._low > self._high:  # one of the clocks was set
            self._low, self._high = low, high

    @property
    def is_known(self) -> bool:
        """Whether there was an exchange."""
        return self._seen > 0

    @property
    def lag(self) -> float:
        """Seconds until a time of the server is known here and has passed there."""
        return self._round_trip + self._high - self._low

    def earliest(self, at: float) -> float:
        """The first local time that may be the server's `at`."""
        return at + self._low

    def latest(self, at: float) -> float:
        """The last local time that may be the server's `at`."""
        return at + self._high
