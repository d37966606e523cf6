"""The database's clock, as this machine's clock sees it."""

from __future__ import annotations

DRIFT = 1e-4
"""How much faster one clock may run than the other."""


class ServerClock:
    """Translates the database's times into local ones, with both ends of the uncertainty.

    A time that the server told between `sent` and `received` bounds the difference of the clocks.
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
        low, high = sent - said, received - said
        slack = DRIFT * (received - self._seen)
        self._low = max(self._low - slack, low)
        self._high = min(self._high + slack, high)
        self._seen = received
        # the last one counts most, and a very slow one is remembered for a while
        self._round_trip = max(received - sent, self._round_trip / 2)
        if self._low > self._high:  # one of the clocks was set
            self._low, self._high = low, high

    @property
    def is_known(self) -> bool:
        return self._seen > 0

    @property
    def lag(self) -> float:
        """Seconds after which a moment of the server's is known here, and surely there."""
        return self._round_trip + self._high - self._low

    def earliest(self, at: float) -> float:
        """The first local moment that may be the server's `at`."""
        return at + self._low

    def latest(self, at: float) -> float:
        """The last local moment that may be the server's `at`."""
        return at + self._high
