"""Fetching for tasks and images: robots, budget and guard at every hop, by domain settings."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Self

from forager.clock import local_time
from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import ErrorKind, GiveUp, SlowDown
from forager.extract.hosts import host_of
from forager.extract.urls import Refusal, normalise
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.slots import HostResting
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.failure import classify_status
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.service import ProxyPool, proxy_guard
from forager.fetch.response import Request, Response, agent_header
from forager.fetch.robots.gate import RobotsGate
from forager.fetch.sender import Fetcher, Hop, Sender, follow
from forager.secrets import Vault
from forager.settings import Settings

# images and the resources of rendered pages beside the pages of tasks
OTHER_REQUESTS = 16
# how long it is remembered whether the pool has proxies at private addresses
GUARD_KNOWN_FOR = 15.0


@dataclass(frozen=True, slots=True)
class DomainTerms:
    """How the URLs of a domain are fetched. Private addresses are allowed for its own hosts."""

    name: str
    use_proxies: bool = False
    allow_private: bool = False

    def covers(self, host: str) -> bool:
        """Whether a host, with its port, is the domain itself or below it."""
        return host == self.name or host.endswith(f".{self.name}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer that can be used: a page, or a 304 to a conditional request."""

    response: Response
    hops: tuple[Hop, ...]
    proxy_id: int | None

    @property
    def final_url(self) -> str | None:
        """Where redirects ended, if there were any."""
        return self.response.url if self.hops else None


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to fetch: what its client may reach, and through what."""

    use_proxies: bool
    allow_private: bool
    private_proxies: bool


@dataclass(frozen=True, slots=True)
class _Parts:
    sender: Sender
    robots: RobotsGate


class Fetching:
    """One budget for all, and a client for each way to fetch. Use it as a context manager."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._agent = agent_header(settings)
        self._stack = AsyncExitStack()
        self._at_once = settings.task_concurrency + OTHER_REQUESTS
        self._budgets = Budgets(
            database, holder=new_id(), delay=None, concurrency=None, at_once=self._at_once
        )
        self._parts: dict[_Way, _Parts] = {}
        self._making = asyncio.Lock()
        self._proxy_guard = GuardPolicy()
        self._guard_known_until = 0.0

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._budgets)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as a worker may send at once."""
        return self._budgets.sending >= self._at_once

    @property
    def pages_waiting(self) -> int:
        """Pages that wait for a slot or a connection of their host."""
        return self._budgets.pages_waiting

    def rooms(self, begun: Mapping[int, int]) -> dict[int, int]:
        """Pages that can be sent within a second beside those that were `begun`, by domain."""
        return self._budgets.rooms(begun)

    async def fetch(
        self, url: str, *, domain: DomainTerms, request: Request | None = None
    ) -> Fetched:
        """One URL to its end, through redirects; raises WorkFailed for all that cannot be used."""
        return await self.journey(domain).fetch(replace(request or Request(url), url=url))

    def journey(self, domain: DomainTerms) -> Journey:
        """A fetch that can be asked how far it came, also when it failed."""
        return Journey(self, domain)

    async def parts(self, domain: DomainTerms, url: str) -> _Parts:
        """What fetches this URL. A hop that leaves the domain leaves its privileges behind."""
        private = domain.allow_private and domain.covers(host_of(url))
        async with self._making:
            way = _Way(domain.use_proxies, private, await self._private_proxies(domain))
            if way not in self._parts:
                self._parts[way] = await self._make(way)
            return self._parts[way]

    async def _private_proxies(self, domain: DomainTerms) -> bool:
        """Whether proxies may have private addresses; the first one may have been added since."""
        if not domain.use_proxies:
            return False
        if local_time() >= self._guard_known_until:
            self._proxy_guard = await proxy_guard(self._database)
            self._guard_known_until = local_time() + GUARD_KNOWN_FOR
        return self._proxy_guard.allow_private

    async def _make(self, way: _Way) -> _Parts:
        options = ClientOptions(
            user_agent=self._agent,
            guard=GuardPolicy(allow_private=way.allow_private),
            pool=PoolSize(total=self._at_once),
        )
        proxies = None
        if way.use_proxies:
            guard = GuardPolicy(allow_private=way.private_proxies)
            proxies = await self._stack.enter_async_context(
                ProxyPool(
                    self._database, Vault(self._settings), guard, region=self._settings.region
                )
            )
            options = replace(options, proxy_guard=guard)
        client = await self._stack.enter_async_context(Client(options))
        sender = Sender(client, self._budgets, proxies)
        return _Parts(sender, RobotsGate(self._database, sender, user_agent=self._agent))


@dataclass(slots=True)
class Journey:
    """One fetch: where it is, and what it has met."""

    fetching: Fetching
    domain: DomainTerms
    url: str | None = None
    status: int | None = None
    proxy_id: int | None = None
    size: int | None = None
    _started: float = field(default_factory=time.monotonic)

    @property
    def duration_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    async def fetch(self, request: Request) -> Fetched:
        await self.check(request.url)
        followed = await follow(self.hops, request, self.check)
        response = followed.response
        if is_challenge(response):
            words = f"the server answered {response.status} with a captcha or another challenge"
            raise SlowDown(words, kind=ErrorKind.BLOCKED)
        failure = classify_status(response.status, response.headers)
        if failure is not None:
            raise failure
        return Fetched(response, followed.hops, self.proxy_id)

    @property
    def hops(self) -> Fetcher:
        """This journey as something that fetches: each hop by the parts that its host allows."""
        return _Hops(self)

    async def check(self, url: str) -> None:
        """Refuse what is no page or forbidden by robots.txt, before it is requested."""
        refusal = normalise(url)
        if isinstance(refusal, Refusal):
            raise GiveUp(f"{url} cannot be fetched: {refusal.value}", kind=ErrorKind.VALIDATION)
        self.url, self.status = url, None
        parts = await self.fetching.parts(self.domain, url)
        verdict = await parts.robots.verdict(url)
        if verdict.trouble is not None:
            raise verdict.trouble
        if verdict.deferred_for is not None:
            raise HostResting(host_of(url), verdict.deferred_for, verdict.reason)
        if not verdict.allowed:
            raise GiveUp(f"robots.txt forbids it: {verdict.reason}", kind=ErrorKind.ROBOTS)

    async def send(self, request: Request) -> Response:
        parts = await self.fetching.parts(self.domain, request.url)
        delay = await parts.robots.crawl_delay(request.url)
        response = await parts.sender.send(request, delay, on_pick=self._picked)
        self.status, self.size = response.status, len(response.body)
        return response

    def _picked(self, proxy_id: int) -> None:
        self.proxy_id = proxy_id


@dataclass(frozen=True, slots=True)
class _Hops:
    journey: Journey

    async def fetch(self, request: Request) -> Response:
        return await self.journey.send(request)


# as much of a body as is looked at, and the largest page that can be a challenge
_HEAD = 60_000
_LARGEST = 250_000
# names that only the scripts and forms of bot protection use
_MARKS = re.compile(
    rb"cf-chl-|cf_chl_|/cdn-cgi/challenge-platform/|id=[\"']challenge-form|px-captcha|_pxCaptcha"
    rb"|captcha-delivery\.com|geo\.captcha|Incapsula incident ID|_Incapsula_Resource"
    rb"|/_sec/cp_challenge|ak-challenge|Pardon Our Interruption|/errors/validateCaptcha"
    rb"|<title>\s*(?:Just a moment\.\.\.|Attention Required! \| Cloudflare|Robot Check"
    rb"|Access Denied|Are you a human\?|Bot Verification|Security check|DDoS-Guard)\s*</title>",
    re.IGNORECASE,
)
# a usual page may load these as well, so they count only where there is little else
_WIDGETS = re.compile(
    rb"g-recaptcha|h-captcha|hcaptcha\.com/1/api|challenges\.cloudflare\.com/turnstile"
    rb"|class=[\"'][^\"']{0,40}captcha",
    re.IGNORECASE,
)
_SMALL = 15_000
_REFUSALS = frozenset({401, 403, 405, 429, 503})
_HEADERS = ("cf-mitigated", "x-datadome", "x-px-block")


def is_challenge(response: Response) -> bool:
    """Whether the response is a captcha or another check for humans."""
    if response.headers.get("cf-mitigated", "").lower() == "challenge":
        return True
    refused = response.status in _REFUSALS
    if refused and any(response.headers.get(name) for name in _HEADERS):
        return True
    body = response.body
    if not body or len(body) > _LARGEST or not (refused or response.status < 300):
        return False
    head = body[:_HEAD]
    return bool(_MARKS.search(head) or (len(body) < _SMALL and _WIDGETS.search(head)))
