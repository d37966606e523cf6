"""What an answer for /robots.txt means (RFC 9309, section 2.3), and how long it may be used."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from forager.fetch.robots.rules import SIZE_LIMIT, Robots, parse_robots

MAX_REDIRECTS = 5
UNREACHABLE_LIMIT = timedelta(days=30)
NO_ANSWER = 0
"""The status of a host that could not be reached at all."""

LIFETIME = timedelta(hours=24)
"""The default, and by the RFC also the longest time a copy should be used."""
MIN_LIFETIME = timedelta(minutes=10)
RETRY_FIRST = timedelta(minutes=1)
RETRY_LAST = timedelta(hours=1)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,10})")
_NOT_STORED = re.compile(r"(?:^|[\s,])no-(?:cache|store)\b")


class RobotsAction(StrEnum):
    """What follows from the status of a response for robots.txt."""

    PARSE = "parse"
    FOLLOW = "follow"
    ALLOW_ALL = "allow_all"
    DEFER = "defer"


@dataclass(frozen=True, slots=True)
class RobotsPolicy:
    """The action for a response, and the reason."""

    action: RobotsAction
    reason: str


def robots_policy(
    status: int, *, redirects: int = 0, unreachable_for: timedelta = timedelta(0)
) -> RobotsPolicy:
    """Decide by status (`NO_ANSWER`: unreachable) after this many redirects."""
    if 200 <= status < 300:
        return RobotsPolicy(RobotsAction.PARSE, f"robots.txt answered {status}")
    if status in _REDIRECTS and redirects < MAX_REDIRECTS:
        return RobotsPolicy(RobotsAction.FOLLOW, f"robots.txt redirects ({status})")
    if 300 <= status < 400:
        return RobotsPolicy(RobotsAction.ALLOW_ALL, f"robots.txt redirects to nothing ({status})")
    if status == 429:
        # a 4xx that means "later": the host requests fewer requests, not more
        return RobotsPolicy(RobotsAction.DEFER, "robots.txt answered 429: the host is busy")
    if 400 <= status < 500:
        # also for 401 and 403: by the RFC, any 4xx means "there are no rules"
        return RobotsPolicy(RobotsAction.ALLOW_ALL, f"there is no robots.txt ({status})")
    said = f"answered {status}" if status else "could not be reached"
    if unreachable_for >= UNREACHABLE_LIMIT:
        days = UNREACHABLE_LIMIT.days
        return RobotsPolicy(RobotsAction.ALLOW_ALL, f"robots.txt {said} for {days} days")
    return RobotsPolicy(RobotsAction.DEFER, f"robots.txt {said}")


@dataclass(frozen=True, slots=True)
class CachedRobots:
    """A host's robots.txt as the database keeps it.

    `fetched_at` is when the host last gave this answer; while it cannot be reached and no usable
    copy is known, it is when that began. A failed refresh keeps an old copy and only moves
    `expires_at`: rules a day old are better than none.
    """

    body: bytes
    fetched_at: datetime
    expires_at: datetime
    status: int

    def is_fresh(self, now: datetime) -> bool:
        return now < self.expires_at

    def policy(self, now: datetime) -> RobotsPolicy:
        """PARSE, ALLOW_ALL or DEFER: redirects were followed before the response was stored."""
        return robots_policy(
            self.status, redirects=MAX_REDIRECTS, unreachable_for=now - self.fetched_at
        )

    def robots(self, now: datetime) -> Robots | None:
        """The rules to obey, or None: no URL of this host may be fetched yet."""
        match self.policy(now).action:
            case RobotsAction.PARSE:
                return parse_robots(self.body)
            case RobotsAction.DEFER:
                return None
            case _:
                return parse_robots(b"")


def remember(
    previous: CachedRobots | None,
    *,
    status: int,
    body: bytes,
    now: datetime,
    cache_control: str | None = None,
    retry_after: float | None = None,
) -> CachedRobots:
    """The entry to store after a response (or `NO_ANSWER`), given the previous entry."""
    if robots_policy(status, redirects=MAX_REDIRECTS).action is not RobotsAction.DEFER:
        # one byte more than is parsed, so that the parser notices that the file was cut
        kept = body[: SIZE_LIMIT + 1] if 200 <= status < 300 else b""
        return CachedRobots(kept, now, now + lifetime(cache_control), status)
    if previous is None:
        return CachedRobots(b"", now, now + _retry_in(timedelta(0), retry_after), status)
    expires_at = now + _retry_in(now - previous.fetched_at, retry_after)
    was_deferred = robots_policy(previous.status).action is RobotsAction.DEFER
    return replace(
        previous, expires_at=expires_at, status=status if was_deferred else previous.status
    )


def lifetime(cache_control: str | None) -> timedelta:
    """How long a response may be used: by its Cache-Control, within bounds, or a day."""
    text = (cache_control or "").lower()
    if _NOT_STORED.search(text):
        return MIN_LIFETIME
    max_age = _MAX_AGE.search(text)
    if max_age is None:
        return LIFETIME
    return min(max(timedelta(seconds=int(max_age[1])), MIN_LIFETIME), LIFETIME)


def _retry_in(failing_for: timedelta, retry_after: float | None) -> timedelta:
    # waiting as long as it has been failing doubles the interval without a counter
    wait = min(max(failing_for, RETRY_FIRST), RETRY_LAST)
    if retry_after is None or not retry_after > 0:
        return wait
    return max(wait, timedelta(seconds=min(retry_after, LIFETIME.total_seconds())))
