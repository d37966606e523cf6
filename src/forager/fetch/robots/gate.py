"""Checks robots.txt before a URL is fetched: loaded once per origin, stored for all processes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forager.clock import local_time
from forager.db.database import Database
from forager.errors import ErrorKind, GiveUp, WorkFailed
from forager.extract.hosts import host_of
from forager.fetch.budgets.slots import HostThrottled
from forager.fetch.redirects import page_url
from forager.fetch.response import Request, Response
from forager.fetch.robots import store
from forager.fetch.robots.cache import NO_ANSWER, RobotsAction, remember, robots_policy
from forager.fetch.robots.rules import Robots
from forager.fetch.robots.store import select_robots
from forager.fetch.sender import Sender

__all__ = ["select_robots"]

# memory for the rules of all origins; the oldest are dropped, and read from the database again
KNOWN_BYTES = 64 * 1024 * 1024
# approximate memory per origin, and per byte of its parsed file
ORIGIN_BYTES, BYTES_PER_BYTE = 2_000, 20
# Refusals that are no response of the host: its pages would be refused the same way.
OF_THE_ORIGIN = frozenset({ErrorKind.NOT_ALLOWED, ErrorKind.VALIDATION, ErrorKind.TLS})


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """Whether a URL may be fetched. `deferred_for`: unknown; retry after this many seconds."""

    allowed: bool
    rule: str | None = None
    deferred_for: float | None = None
    reason: str = ""
    # set if the host could not be reached
    error: WorkFailed | None = None


class ForbiddenByRobots(GiveUp):
    """A rule of robots.txt forbids the URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"robots.txt forbids it: {reason}", kind=ErrorKind.ROBOTS)
        self.reason = reason


IGNORED = RobotsVerdict(allowed=True, reason="robots.txt is ignored")


@dataclass(slots=True)
class _Origin:
    """The rules of one origin in this process; `robots` is None while they are unknown."""

    robots: Robots | None = None
    reason: str = ""
    error: WorkFailed | None = None
    expires: float = 0.0
    size: int = 0
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)


class KnownRobots:
    """The rules of many origins in memory, for all gates that send with the same client."""

    def __init__(self) -> None:
        self._origins: dict[str, _Origin] = {}
        self._size = 0

    def of_origin(self, origin: str) -> _Origin:
        known = self._origins.get(origin)
        if known is None:
            known = self._origins[origin] = _Origin()
            self.resize(known, ORIGIN_BYTES)
        return known

    def resize(self, known: _Origin, size: int) -> None:
        """Update the memory of an origin, and drop the oldest ones if needed."""
        self._size += size - known.size
        known.size = size
        while self._size > KNOWN_BYTES:
            idle = (
                name
                for name, each in self._origins.items()
                if each is not known and not each.loading.locked()
            )
            oldest = next(idle, None)
            if oldest is None:
                return
            self._size -= self._origins.pop(oldest).size


class RobotsGate:
    """Applies the robots.txt of an origin to its URLs; raises GiveUp where none can be fetched."""

    def __init__(
        self,
        database: Database,
        sender: Sender,
        *,
        user_agent: str,
        ignore: bool = False,
        known: KnownRobots | None = None,
    ) -> None:
        """`known`: the rules in memory, if other gates use them too."""
        self._database = database
        self._sender = sender
        self._user_agent = user_agent
        self._ignore = ignore
        self._robots = KnownRobots() if known is None else known
        # origins whose rules this gate waits for, and how many requests do
        self._loading: Counter[str] = Counter()

    async def verdict(self, url: str) -> RobotsVerdict:
        """Whether robots.txt allows a URL, and its Crawl-delay; may fetch the file."""
        if self._ignore:
            return IGNORED
        known = await self._known(url)
        if known.robots is None:
            wait = max(1.0, known.expires - local_time())
            return RobotsVerdict(
                allowed=False, deferred_for=wait, reason=known.reason, error=known.error
            )
        found = known.robots.verdict(url, self._user_agent)
        if found.allowed:
            return RobotsVerdict(allowed=True, rule=found.rule, reason=known.reason)
        reason = f"line {found.line} of robots.txt: {found.rule}"
        return RobotsVerdict(allowed=False, rule=found.rule, reason=reason)

    async def check(self, url: str) -> None:
        """Raise an error for a URL that is no page, or that robots.txt forbids or defers."""
        verdict = await self.verdict(page_url(url))
        if verdict.error is not None:
            # the error is remembered: each raise would add its frames, and keep their values
            raise verdict.error.with_traceback(None)
        if verdict.deferred_for is not None:
            raise HostThrottled(host_of(url), verdict.deferred_for, verdict.reason)
        if not verdict.allowed:
            raise ForbiddenByRobots(verdict.reason)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests, if robots.txt sets them."""
        if self._ignore:
            return None
        robots = (await self._known(url)).robots
        return None if robots is None else robots.crawl_delay(self._user_agent)

    async def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that robots.txt lists, also where its rules are ignored."""
        robots = (await self._known(url)).robots
        return [] if robots is None else list(robots.sitemaps)

    async def fetch(
        self,
        request: Request,
        *,
        on_pick: Callable[[int], None] | None = None,
        on_slot: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request with the delay of robots.txt; see `Sender.send`."""
        delay = await self.crawl_delay(request.url)
        return await self._sender.send(request, delay, on_pick=on_pick, on_slot=on_slot)

    def loading(self) -> list[str]:
        """Origins without rules for whose robots.txt requests wait."""
        return [each for each in self._loading if self._robots.of_origin(each).robots is None]

    async def _known(self, url: str) -> _Origin:
        origin = origin_of(url)
        known = self._robots.of_origin(origin)
        if local_time() < known.expires:
            return known
        if known.robots is not None and known.loading.locked():
            return known  # one request refreshes it; the others use the known rules
        self._loading[origin] += 1
        try:
            async with known.loading:
                if local_time() >= known.expires:
                    await self._load(origin, known)
        finally:
            self._loading -= Counter([origin])
        return known

    async def _load(self, origin: str, known: _Origin) -> None:
        """Load from the database if it was fetched recently, otherwise from the host."""
        kept, now = await self._database.run(store.select_robots, origin)
        # an earlier failure to reach the host does not mean that it is unreachable now
        if kept is None or kept.status == NO_ANSWER or not kept.is_fresh(now):
            sent_at = local_time()
            try:
                answer = await self._request(origin)
            except HostThrottled as error:
                self._defer(known, error)
                return
            now += timedelta(seconds=local_time() - sent_at)
            if isinstance(answer, WorkFailed):
                known.error = answer
                kept = remember(kept, status=NO_ANSWER, body=b"", now=now)
            else:
                known.error = None
                kept = remember(
                    kept,
                    status=answer.status,
                    body=answer.body,
                    now=now,
                    cache_control=answer.headers.get("Cache-Control"),
                    retry_after=answer.retry_after,
                )
            await self._database.run(store.upsert_robots, origin, kept)
        known.robots = kept.robots(now)
        known.reason = kept.policy(now).reason
        known.expires = local_time() + (kept.expires_at - now).total_seconds()
        self._robots.resize(known, ORIGIN_BYTES + BYTES_PER_BYTE * len(kept.body))

    def _defer(self, known: _Origin, error: HostThrottled) -> None:
        """Keep the old rules while the host is blocked; without any, the URL is deferred."""
        known.expires = local_time() + max(1.0, error.seconds)
        if known.robots is None:
            known.reason = f"robots.txt cannot be fetched yet: {error.reason}"

    async def _request(self, origin: str) -> Response | WorkFailed:
        """Fetch robots.txt, following redirects; each hop takes a slot of its host."""
        url = f"{origin}/robots.txt"
        redirects = 0
        while True:
            try:
                response = await self._sender.send(Request(url), None)
            except HostThrottled:
                raise
            except WorkFailed as error:
                if redirects == 0 and isinstance(error, GiveUp) and error.kind in OF_THE_ORIGIN:
                    raise
                return error
            policy = robots_policy(response.status, redirects=redirects)
            if policy.action is not RobotsAction.FOLLOW or response.redirect is None:
                return response
            url = response.redirect
            redirects += 1


def origin_of(url: str) -> str:
    """Scheme, host and port of a normalized URL."""
    end = url.find("/", url.find("//") + 2)
    return url if end < 0 else url[:end]


MAX_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class RobotsReport:
    """The stored robots.txt; `is_waited_for`: nothing is fetched until it can be read."""

    origin: str
    status: int
    text: str
    is_cut: bool
    fetched_at: datetime
    expires_at: datetime
    crawl_delay: float | None
    is_waited_for: bool
    notes: tuple[str, ...]


async def robots_report(database: Database, url: str, agent: str) -> RobotsReport | None:
    """The robots.txt that applies to a URL; None if it was not fetched yet."""
    origin = origin_of(url)
    kept, now = await database.run(store.select_robots, origin)
    if kept is None:
        return None
    rules = kept.robots(now)
    return RobotsReport(
        origin=origin,
        status=kept.status,
        text=kept.body[:MAX_SHOWN].decode("utf-8", "replace"),
        is_cut=len(kept.body) > MAX_SHOWN,
        fetched_at=kept.fetched_at,
        expires_at=kept.expires_at,
        crawl_delay=rules.crawl_delay(agent) if rules else None,
        is_waited_for=rules is None,
        notes=rules.notes if rules else (),
    )
