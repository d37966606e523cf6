"""The sender: one request at its host's pace, directly or through a proxy of the pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from forager.errors import Retry, RotateProxy, SlowDown
from forager.extract.hosts import host_of
from forager.fetch.budgets.budget import Budgets
from forager.fetch.client import Client
from forager.fetch.proxies.record import PickedProxy
from forager.fetch.proxies.rotation import counted, through_pool
from forager.fetch.proxies.service import ProxyPool
from forager.fetch.response import Request, Response
from forager.fetch.robots.gate import RobotsGate
from forager.metrics.recorded import BUDGET_WAIT_SECONDS, FETCH_SECONDS

# longer waits raise HostResting
PAGE_WAIT = 60.0
BACKGROUND_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Sender:
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
        """Wait for a slot and fetch; each proxy has slots of its own at each host.

        `on_pick` hears the id of every proxy that is about to be tried.
        """
        if self.proxies is None:
            return await self._send(request, robots_delay, None)

        async def send(picked: PickedProxy) -> Response:
            if on_pick is not None:
                on_pick(picked.id)
            return await self._send(replace(request, proxy=picked.spec), robots_delay, picked.id)

        return await through_pool(self.proxies, request.url, send)

    async def _send(
        self, request: Request, robots_delay: float | None, proxy_id: int | None
    ) -> Response:
        asked_at = time.perf_counter()
        slot = await self.budgets.acquire(
            host_of(request.url),
            robots_delay=robots_delay,
            proxy_id=proxy_id,
            background=request.is_background,
            max_wait=BACKGROUND_WAIT if request.is_background else PAGE_WAIT,
        )
        BUDGET_WAIT_SECONDS.observe(time.perf_counter() - asked_at)
        with slot:
            try:
                response = await self._fetch(request, proxy_id)
            except SlowDown as error:
                slot.slow_down(error.retry_after)
                raise
            except RotateProxy:
                raise  # tells nothing about the host
            except Retry:
                slot.failed(is_retry=request.is_retry)
                raise
            FETCH_SECONDS.observe(response.timing.total)
            slot.answered(
                response.status,
                response.timing.total,
                response.retry_after,
                is_retry=request.is_retry,
            )
            return response

    async def _fetch(self, request: Request, proxy_id: int | None) -> Response:
        if self.proxies is None or proxy_id is None:
            return await self.client.fetch(request)
        return await counted(self.proxies, proxy_id, request, self.client.fetch)


@dataclass(frozen=True, slots=True)
class Paced:
    """Requests at the pace of their hosts, as robots.txt wants it; also each hop of a redirect."""

    sender: Sender
    robots: RobotsGate

    async def fetch(self, request: Request) -> Response:
        return await self.sender.send(request, await self.robots.crawl_delay(request.url))
