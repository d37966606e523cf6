"""The sender: requests at the pace of their host, directly or through a proxy; and redirects."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from ada_url import URL

from forager.errors import ErrorKind, GiveUp, PerhapsProxy, Retry, RotateProxy, SlowDown
from forager.extract.hosts import host_of
from forager.extract.urls import NormalisedUrl, Refusal, normalise
from forager.fetch.budgets.budget import Budgets
from forager.fetch.client import Client
from forager.fetch.failure import classify_status
from forager.fetch.proxies.record import PickedProxy
from forager.fetch.proxies.service import ProxyPool
from forager.fetch.response import REDIRECTS, Request, Response
from forager.hints import Hint, action
from forager.metrics.recorded import BUDGET_WAIT_SECONDS, FETCH_SECONDS

# longer waits raise HostResting
PAGE_WAIT = 60.0
BACKGROUND_WAIT = 5.0
# proxies that are tried for one request
PROXIES_PER_REQUEST = 3

Send = Callable[[PickedProxy], Awaitable[Response]]
Fetch = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends all requests of a crawl or worker: pages, sitemaps, images and robots.txt."""

    client: Client
    budgets: Budgets
    proxies: ProxyPool | None = None

    async def send(
        self,
        request: Request,
        robots_delay: float | None,
        *,
        on_pick: Callable[[int], None] | None = None,
    ) -> Response:
        """Wait for a slot and fetch; each proxy has separate slots at each host.

        `on_pick` is called with the id of each proxy before it is tried.
        """
        if self.proxies is None:
            return await self._send(request, robots_delay, None)

        async def send(picked: PickedProxy) -> Response:
            if on_pick is not None:
                on_pick(picked.id)
            return await self._send(replace(request, proxy=picked.spec), robots_delay, picked.id)

        return await _through_pool(self.proxies, request.url, send)

    async def _send(
        self, request: Request, robots_delay: float | None, proxy_id: int | None
    ) -> Response:
        started = time.perf_counter()
        slot = await self.budgets.acquire(
            host_of(request.url),
            robots_delay=robots_delay,
            proxy_id=proxy_id,
            background=request.is_background,
            max_wait=BACKGROUND_WAIT if request.is_background else PAGE_WAIT,
        )
        BUDGET_WAIT_SECONDS.observe(time.perf_counter() - started)
        with slot:
            try:
                response = await self._fetch(request, proxy_id)
            except SlowDown as error:
                slot.slow_down(error.retry_after)
                raise
            except RotateProxy:
                raise  # the host is not at fault
            except Retry:
                slot.failed(is_retry=request.is_retry)
                raise
            FETCH_SECONDS.observe(response.timing.total)
            slot.answered(response.status, response.retry_after, is_retry=request.is_retry)
            return response

    async def _fetch(self, request: Request, proxy_id: int | None) -> Response:
        if self.proxies is None or proxy_id is None:
            return await self.client.fetch(request)
        return await _counted(self.proxies, proxy_id, request, self.client.fetch)


async def _through_pool(proxies: ProxyPool, url: str, send: Send) -> Response:
    """Send through the least recently used proxy; if that one fails, through the next."""
    tried: list[int] = []
    suspects: list[tuple[int, str]] = []
    while True:
        picked = await proxies.pick(host_of(url), exclude=tried)
        if picked is None:
            raise Retry(
                "there is no proxy that can be used" + (": others failed" if tried else ""),
                kind=ErrorKind.NETWORK,
                hint=Hint("{} shows the pool.", action("proxies list")),
            )
        try:
            response = await send(picked)
        except RotateProxy as error:
            if isinstance(error, PerhapsProxy):
                suspects.append((picked.id, error.message))
            else:
                proxies.failed(picked.id, error.message)
            tried.append(picked.id)
            if len(tried) >= PROXIES_PER_REQUEST:
                raise
            continue
        # the server responds, so the failures were those of the proxies
        for proxy_id, reason in suspects:
            proxies.failed(proxy_id, reason)
        proxies.succeeded(picked.id, response.timing.total * 1000)
        return response


async def _counted(proxies: ProxyPool, proxy_id: int, request: Request, fetch: Fetch) -> Response:
    """Fetch, and count the traffic of the proxy, except for requests that it refused."""
    host = host_of(request.url)
    try:
        response = await fetch(request)
    except RotateProxy:
        raise
    except BaseException:
        proxies.used(proxy_id, host, 0)
        raise
    proxies.used(proxy_id, host, response.wire_size)
    return response


# credentials are sent only to the origin that they were given for
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_CONDITIONAL_HEADERS = frozenset({"if-none-match", "if-modified-since"})

CheckHop = Callable[[str], Awaitable[None]]


class Fetcher(Protocol):
    async def fetch(self, request: Request) -> Response: ...


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect."""

    url: str
    status: int


def page_url(url: str) -> NormalisedUrl:
    """The normalized URL of a page; raises an error for any other URL."""
    normalised = normalise(url)
    if isinstance(normalised, Refusal):
        message = f"{url[:200]} cannot be fetched: {normalised.value}"
        raise GiveUp(message, kind=ErrorKind.VALIDATION)
    return normalised


async def any_hop(_: str) -> None:
    """Allow redirects to anywhere; the guard checks every address."""


async def follow(
    client: Fetcher, request: Request, check_hop: CheckHop = any_hop, max_hops: int = 10
) -> tuple[Response, tuple[Hop, ...]]:
    """Fetch, following redirects; `check_hop` raises an error to refuse a target."""
    hops: list[Hop] = []
    while True:
        response = await client.fetch(request)
        if response.status not in REDIRECTS:
            return response, tuple(hops)
        hops.append(Hop(response.url, response.status))
        target = _target(response, hops, max_hops)
        await check_hop(target)
        request = _redirected(request, target)


async def fetch_page(
    client: Fetcher, request: Request, check_hop: CheckHop = any_hop, max_hops: int = 10
) -> Response:
    """The response behind all redirects; raises the failure that its status means."""
    response, _ = await follow(client, request, check_hop, max_hops)
    if (failure := classify_status(response.status, response.headers)) is not None:
        raise failure
    return response


def _target(response: Response, hops: list[Hop], max_hops: int) -> str:
    target = response.redirect
    if target is None:
        location = response.headers.get("Location", "")[:200]
        raise _broken(f"{response.url} redirects to {location!r}, which is no web page")
    target = target.partition("#")[0]
    if any(hop.url == target for hop in hops):
        raise _broken(f"{hops[0].url} redirects in a loop, back to {target}")
    if len(hops) > max_hops:
        raise _broken(f"{hops[0].url} redirects more than {max_hops} times")
    return target


def _broken(message: str) -> GiveUp:
    return GiveUp(message, kind=ErrorKind.HTTP_SERVER)


def _redirected(request: Request, target: str) -> Request:
    """The request for the next URL, without headers for the first one only."""
    dropped = _CONDITIONAL_HEADERS
    if URL(request.url).origin != URL(target).origin:
        dropped = dropped | _PRIVATE_HEADERS
    headers = {
        name: value for name, value in request.headers.items() if name.lower() not in dropped
    }
    return replace(request, url=target, headers=headers, etag=None, last_modified=None)
