"""Fetching for tasks and images: robots.txt, budget and guard are applied to every hop."""

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
from forager.errors import ErrorKind, SlowDown
from forager.extract.hosts import host_of
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.view import BudgetView
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.failure import classify_status
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.service import ProxyPool, proxy_guard
from forager.fetch.redirects import follow, page_url
from forager.fetch.response import Request, Response, agent_header
from forager.fetch.robots.gate import RobotsGate
from forager.fetch.sender import Sender
from forager.secrets import Vault
from forager.settings import Settings

# redirects that hold for later requests as well
PERMANENT = (301, 308)
# images and resources of rendered pages, in addition to the pages of tasks
OTHER_REQUESTS = 16
# how long the presence of proxies at private addresses is cached
GUARD_KNOWN_FOR = 15.0


@dataclass(frozen=True, slots=True)
class DomainTerms:
    """How the URLs of a domain are fetched; private addresses apply to its own hosts only."""

    name: str
    use_proxies: bool = False
    allow_private: bool = False

    def covers(self, host: str) -> bool:
        """Whether the terms apply to a host."""
        return host == self.name or host.endswith(f".{self.name}")


@dataclass(frozen=True, slots=True)
class _Route:
    """The addresses and proxies that a client may use."""

    use_proxies: bool
    allow_private: bool
    private_proxies: bool


class Fetching:
    """Fetches pages for tasks: with robots.txt, the budget of the host, redirects and proxies.

    HostThrottled and DomainInactive say that no request was sent; WorkFailed has the reason why a
    request failed. All requests share one budget, and those of a route one client.

        async with Fetching(database, settings) as fetching:
            response = await fetching.begin(terms).fetch_page(Request(url))
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._agent = agent_header(settings)
        self._stack = AsyncExitStack()
        self._at_once = settings.task_concurrency + OTHER_REQUESTS
        self._budgets = Budgets(database, holder=new_id(), at_once=self._at_once)
        self._view = BudgetView(self._budgets)
        self._gates: dict[_Route, RobotsGate] = {}
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
        """Whether as many requests are sent as may be at once."""
        return self._budgets.sending >= self._at_once

    @property
    def pages_waiting(self) -> int:
        return self._budgets.pages_waiting

    def rooms(self, begun: Mapping[int, int]) -> dict[int, int]:
        return self._budgets.rooms(begun)

    def begin(self, domain: DomainTerms) -> PageFetch:
        """A fetch whose progress can be read, also after it failed."""
        return PageFetch(self, domain)

    async def gate(self, domain: DomainTerms, url: str) -> RobotsGate:
        """The client for this URL, behind robots.txt. Other domains get no privileges."""
        private = domain.allow_private and domain.covers(host_of(url))
        async with self._making:
            route = _Route(domain.use_proxies, private, await self._private_proxies(domain))
            if route not in self._gates:
                self._gates[route] = await self._make(route)
            return self._gates[route]

    async def _private_proxies(self, domain: DomainTerms) -> bool:
        """Whether proxies may have private addresses; the first one may have been added since."""
        if not domain.use_proxies:
            return False
        if local_time() >= self._guard_known_until:
            self._proxy_guard = await proxy_guard(self._database)
            self._guard_known_until = local_time() + GUARD_KNOWN_FOR
        return self._proxy_guard.allow_private

    async def _make(self, route: _Route) -> RobotsGate:
        options = ClientOptions(
            user_agent=self._agent,
            guard=GuardPolicy(allow_private=route.allow_private),
            pool=PoolSize(total=self._at_once),
        )
        proxies = None
        if route.use_proxies:
            guard = GuardPolicy(allow_private=route.private_proxies)
            proxies = await self._stack.enter_async_context(
                ProxyPool(
                    self._database, Vault(self._settings), guard, region=self._settings.region
                )
            )
            options = replace(options, proxy_guard=guard)
        client = await self._stack.enter_async_context(Client(options))
        sender = Sender(client, self._view, proxies)
        return RobotsGate(self._database, sender, user_agent=self._agent)


@dataclass(slots=True)
class PageFetch:
    """One fetch through redirects: the current URL, and the last response."""

    fetching: Fetching
    domain: DomainTerms
    url: str | None = None
    status: int | None = None
    proxy_id: int | None = None
    size: int | None = None
    # the URL that permanent redirects lead to, once its page was received
    permanent_url: str | None = None
    _started: float = field(default_factory=time.monotonic)

    @property
    def duration_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    async def fetch_page(self, request: Request) -> Response:
        """A page, or a 304 to a conditional request; raises WorkFailed for other responses."""
        await self.check(request.url)
        response, hops = await follow(self, request, self.check)
        if is_challenge(response):
            message = f"the server answered {response.status} with a captcha or another challenge"
            raise SlowDown(message, kind=ErrorKind.BLOCKED)
        failure = classify_status(response.status, response.headers)
        if failure is not None:
            raise failure
        temporary = (hop.url for hop in hops if hop.status not in PERMANENT)
        self.permanent_url = next(temporary, response.url)
        return response

    async def check(self, url: str) -> None:
        """Raise an error for a URL that is no page, or that robots.txt forbids."""
        page_url(url)
        self.url, self.status = url, None
        gate = await self.fetching.gate(self.domain, url)
        await gate.check(url)

    async def fetch(self, request: Request) -> Response:
        """One hop, with the client that its host allows."""
        gate = await self.fetching.gate(self.domain, request.url)
        response = await gate.fetch(request, on_pick=self._picked)
        self.status, self.size = response.status, len(response.body)
        return response

    def _picked(self, proxy_id: int) -> None:
        self.proxy_id = proxy_id


# the part of a body that is searched, and the largest page that can be a challenge
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
# ordinary pages may load these too, so they count on small pages only
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
