"""The sender: requests at the pace of their host, directly or through a proxy."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from forager.errors import ErrorKind, ProxySuspected, Retry, RotateProxy, SlowDown, StaleConnection
from forager.extract.hosts import host_of
from forager.fetch.budgets.view import BudgetView
from forager.fetch.client import Client
from forager.fetch.proxies.proxy import PickedProxy
from forager.fetch.proxies.service import ProxyPool
from forager.fetch.response import Request, Response
from forager.hints import Hint, action
from forager.metrics.catalog import BUDGET_WAIT_SECONDS, FETCH_SECONDS

# longer waits raise HostThrottled
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
    budgets: BudgetView
    proxies: ProxyPool | None = None

    async def send(
        self,
        request: Request,
        robots_delay: float | None,
        *,
        on_pick: Callable[[int], None] | None = None,
        on_slot: Callable[[], None] | None = None,
    ) -> Response:
        """Wait for a slot and fetch; each proxy has separate slots at each host.

        `on_pick` is called with the id of each proxy before it is tried, `on_slot` when the request
        is about to be sent.
        """
        if self.proxies is None:
            return await self._send(request, robots_delay, None, on_slot)

        async def send(picked: PickedProxy) -> Response:
            if on_pick is not None:
                on_pick(picked.id)
            proxied = replace(request, proxy=picked.spec)
            return await self._send(proxied, robots_delay, picked.id, on_slot)

        return await _through_pool(self.proxies, request.url, send)

    async def _send(
        self,
        request: Request,
        robots_delay: float | None,
        proxy_id: int | None,
        on_slot: Callable[[], None] | None,
    ) -> Response:
        try:
            return await self._send_once(request, robots_delay, proxy_id, on_slot)
        except StaleConnection:  # servers close idle connections at any moment
            return await self._send_once(request, robots_delay, proxy_id, on_slot)

    async def _send_once(
        self,
        request: Request,
        robots_delay: float | None,
        proxy_id: int | None,
        on_slot: Callable[[], None] | None,
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
        if on_slot is not None:
            on_slot()
        with slot:
            try:
                response = await self._fetch(request, proxy_id)
            except SlowDown as error:
                slot.record(None)
                slot.slow_down(error.retry_after)
                raise
            except (RotateProxy, StaleConnection):
                raise  # the host is not at fault
            except Retry:
                slot.record(None)
                slot.failed(is_retry=request.is_retry)
                raise
            FETCH_SECONDS.observe(response.timing.total)
            slot.record(response.status, response.timing.total)
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
            if isinstance(error, ProxySuspected):
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
