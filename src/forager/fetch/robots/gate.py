"""Asks robots.txt before a URL is fetched: once per origin, kept in the database for all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forager.clock import local_time
from forager.db.database import Database
from forager.errors import ErrorKind, GiveUp, WorkFailed
from forager.fetch.budgets.slots import HostResting
from forager.fetch.response import Request, Response
from forager.fetch.robots import store
from forager.fetch.robots.cache import (
    NO_ANSWER,
    CachedRobots,
    RobotsAction,
    remember,
    robots_policy,
)
from forager.fetch.robots.rules import Robots
from forager.fetch.sender import Sender

# of memory for the rules of all origins; the oldest are read from the database again
KNOWN_BYTES = 64 * 1024 * 1024
# about what an origin takes, and each byte of its file once it is parsed
ORIGIN_BYTES, BYTES_PER_BYTE = 2_000, 20
# A refusal of these kinds is no answer of the host: its pages would be refused the same way.
OF_THE_ORIGIN = frozenset({ErrorKind.NOT_ALLOWED, ErrorKind.VALIDATION, ErrorKind.TLS})


@dataclass(frozen=True, slots=True)
class RobotsVerdict:
    """Whether a URL may be fetched. `deferred_for`: unknown, try again after this many seconds."""

    allowed: bool
    rule: str | None = None
    deferred_for: float | None = None
    reason: str = ""
    # deferred because the host could not be reached at all, and by what
    trouble: WorkFailed | None = None


IGNORED = RobotsVerdict(allowed=True, reason="robots.txt is ignored")


@dataclass(slots=True)
class _Origin:
    """What is known of one origin here. `robots` is None while it is unknown."""

    robots: Robots | None = None
    reason: str = ""
    trouble: WorkFailed | None = None
    expires: float = 0.0
    size: int = 0
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The last answer after redirects, or `NO_ANSWER`."""

    status: int
    body: bytes = b""
    cache_control: str | None = None
    retry_after: float | None = None
    trouble: WorkFailed | None = None


class RobotsGate:
    """Judges URLs by their origin's robots.txt; may raise GiveUp where nothing can be fetched."""

    def __init__(
        self,
        database: Database,
        sender: Sender,
        *,
        user_agent: str,
        ignore: bool = False,
    ) -> None:
        self._database = database
        self._sender = sender
        self._user_agent = user_agent
        self._ignore = ignore
        self._origins: dict[str, _Origin] = {}
        self._size = 0

    async def verdict(self, url: str) -> RobotsVerdict:
        """Judge a normalised URL."""
        if self._ignore:
            return IGNORED
        known = await self._known(url)
        if known.robots is None:
            wait = max(1.0, known.expires - local_time())
            return RobotsVerdict(
                allowed=False, deferred_for=wait, reason=known.reason, trouble=known.trouble
            )
        found = known.robots.verdict(url, self._user_agent)
        if found.allowed:
            return RobotsVerdict(allowed=True, rule=found.rule, reason=known.reason)
        reason = f"line {found.line} of robots.txt: {found.rule}"
        return RobotsVerdict(allowed=False, rule=found.rule, reason=reason)

    async def crawl_delay(self, url: str) -> float | None:
        """Seconds between requests, if robots.txt sets them."""
        if self._ignore:
            return None
        robots = (await self._known(url)).robots
        return None if robots is None else robots.crawl_delay(self._user_agent)

    async def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that robots.txt names, also where its rules are ignored."""
        robots = (await self._known(url)).robots
        return [] if robots is None else list(robots.sitemaps)

    def loading(self) -> list[str]:
        """Origins whose robots.txt is being fetched and is not known yet."""
        return [
            origin
            for origin, known in self._origins.items()
            if known.robots is None and known.loading.locked()
        ]

    # --- what is known ---------------------------------------------------------------------

    async def _known(self, url: str) -> _Origin:
        origin = origin_of(url)
        known = self._origins.get(origin)
        if known is None:
            known = self._remember_origin(origin)
        if local_time() < known.expires:
            return known
        if known.robots is not None and known.loading.locked():
            return known  # one request refreshes it; the others use the known rules
        async with known.loading:
            if local_time() >= known.expires:
                await self._load(origin, known)
        return known

    def _remember_origin(self, origin: str) -> _Origin:
        known = self._origins[origin] = _Origin()
        self._resize(known, ORIGIN_BYTES)
        return known

    def _resize(self, known: _Origin, size: int) -> None:
        """Count what an origin takes now; the oldest ones make room."""
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

    async def _load(self, origin: str, known: _Origin) -> None:
        """From the database if it was fetched recently, else from the host."""
        kept, now = await self._database.run(store.select_robots, origin)
        # an earlier failure to reach the host does not mean that it is unreachable now
        if kept is None or kept.status == NO_ANSWER or not kept.is_fresh(now):
            asked = local_time()
            try:
                answer = await self._ask(origin)
            except HostResting as error:
                self._defer(known, error)
                return
            now += timedelta(seconds=local_time() - asked)
            kept = _kept(kept, answer, now)
            known.trouble = answer.trouble
            await self._database.run(store.upsert_robots, origin, kept)
        _learn(known, kept, now)
        self._resize(known, ORIGIN_BYTES + BYTES_PER_BYTE * len(kept.body))

    def _defer(self, known: _Origin, error: HostResting) -> None:
        """The host is blocked: old rules stay; without any, the answer is unknown."""
        known.expires = local_time() + max(1.0, error.seconds)
        if known.robots is None:
            known.reason = f"robots.txt cannot be fetched yet: {error.reason}"

    # --- asking the host -------------------------------------------------------------------

    async def _ask(self, origin: str) -> _Answer:
        """Fetch robots.txt, following redirects; each hop takes a slot of its host."""
        url: str | None = f"{origin}/robots.txt"
        answer = _Answer(NO_ANSWER)
        redirects = 0
        while url is not None:
            try:
                response = await self._sender.send(Request(url), None)
            except HostResting:
                raise
            except WorkFailed as error:
                if redirects == 0 and isinstance(error, GiveUp) and error.kind in OF_THE_ORIGIN:
                    raise
                return _Answer(NO_ANSWER, trouble=error)
            answer = _answer(response)
            follows = robots_policy(response.status, redirects=redirects)
            url = response.redirect if follows.action is RobotsAction.FOLLOW else None
            redirects += 1
        return answer


@dataclass(frozen=True, slots=True)
class Paced:
    """Sends requests with the delay of robots.txt, also for each hop of a redirect."""

    sender: Sender
    robots: RobotsGate

    async def fetch(self, request: Request) -> Response:
        return await self.sender.send(request, await self.robots.crawl_delay(request.url))


def _answer(response: Response) -> _Answer:
    return _Answer(
        response.status,
        response.body,
        response.headers.get("Cache-Control"),
        response.retry_after,
    )


def _kept(previous: CachedRobots | None, answer: _Answer, now: datetime) -> CachedRobots:
    return remember(
        previous,
        status=answer.status,
        body=answer.body,
        now=now,
        cache_control=answer.cache_control,
        retry_after=answer.retry_after,
    )


def _learn(known: _Origin, kept: CachedRobots, now: datetime) -> None:
    known.robots = kept.robots(now)
    known.reason = kept.policy(now).reason
    known.expires = local_time() + (kept.expires_at - now).total_seconds()


def origin_of(url: str) -> str:
    """Scheme, host and port of a normalised URL."""
    end = url.find("/", url.find("//") + 2)
    return url if end < 0 else url[:end]


MAX_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class RobotsReport:
    """`is_waited_for`: the host could not say its rules, and nothing is fetched until it can."""

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
    """The file that counts for a URL; None if it was not fetched yet."""
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
