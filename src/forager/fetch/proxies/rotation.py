"""Requests through the pool: a proxy that does not do its part is replaced by another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from forager.errors import ErrorKind, PerhapsProxy, Retry, RotateProxy
from forager.extract.hosts import host_of
from forager.fetch.client import Client, ClientOptions
from forager.fetch.proxies.record import PickedProxy
from forager.fetch.proxies.service import ProxyPool
from forager.fetch.response import Request, Response
from forager.hints import Hint, action

# proxies that are tried for one request before it counts as failed
PROXIES_PER_REQUEST = 3

Send = Callable[[PickedProxy], Awaitable[Response]]
Fetch = Callable[[Request], Awaitable[Response]]


async def through_pool(proxies: ProxyPool, url: str, send: Send) -> Response:
    """Send by the proxy that rested longest; if that is at fault, by the next."""
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
        # the server answers: those through whom it did not are to blame
        for proxy_id, reason in suspects:
            proxies.failed(proxy_id, reason)
        proxies.succeeded(picked.id, response.timing.total * 1000)
        return response


async def counted(proxies: ProxyPool, proxy_id: int, request: Request, fetch: Fetch) -> Response:
    """Fetch, and count what went through the proxy; what it refused itself did not."""
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


class PooledClient(Client):
    """A client that asks for nothing directly: requests without a proxy get one of the pool."""

    def __init__(self, options: ClientOptions, proxies: ProxyPool) -> None:
        super().__init__(options)
        self._proxies = proxies

    async def fetch(self, request: Request) -> Response:
        if request.proxy is not None:
            return await super().fetch(request)

        async def send(picked: PickedProxy) -> Response:
            through = replace(request, proxy=picked.spec)
            return await counted(self._proxies, picked.id, through, super(PooledClient, self).fetch)

        return await through_pool(self._proxies, request.url, send)
