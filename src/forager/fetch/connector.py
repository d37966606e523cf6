"""How connections are made: resolved, guarded, timed, through a SOCKS proxy if configured."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, Self

from aiohttp import (
    AddrInfoType,
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientPayloadError,
    ClientRequest,
    ClientTimeout,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import _EXC_SENTINEL
from aiohttp.tracing import Trace
from python_socks import ProxyError, ProxyType

from forager.errors import GiveUp, error_text
from forager.fetch.failure import proxy_failure, socks_failure
from forager.fetch.guard import GuardPolicy, refused
from forager.fetch.proxies.proxy import ProxySpec


@dataclass(slots=True)
class Stopwatch:
    """Phases of one request."""

    started: float
    dns: float | None = None
    connect: float | None = None
    first_byte: float = 0.0

    @property
    def is_reused(self) -> bool:
        """Whether the request used a kept connection, and has no response yet."""
        return self.connect is None and not self.first_byte


# connections are opened inside the library, which only a context variable reaches
stopwatch: ContextVar[Stopwatch] = ContextVar("stopwatch")


class Channel(ResponseHandler):
    """One connection, with the address of its peer."""

    peer: str = ""

    def data_received(self, data: bytes) -> None:
        # The parser fails on data after a body that is longer than its Content-Length. Fed in one
        # piece with the head, it would also lose the response before that data.
        if self._payload is None or self._payload.is_eof():
            head = data.find(b"\r\n\r\n") + 4
            if 4 <= head < len(data):
                super().data_received(data[:head])
                data = data[head:]
        super().data_received(data)

    def set_exception(self, exc: Any, exc_cause: BaseException = _EXC_SENTINEL) -> None:
        super().set_exception(exc, exc_cause)
        # a parser error in a body is not reported to its reader, which would keep waiting
        payload = self._payload
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            known = isinstance(exc, ClientError)
            payload.set_exception(exc if known else ClientPayloadError(str(exc)))


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Maximum connections, in total and per host (0: no separate limit)."""

    total: int = 100
    per_host: int = 0


class GuardedConnector(TCPConnector):
    """Connects to checked addresses only, and checks again whom it reached before it sends.

    `_create_connection` is where aiohttp's connectors differ from each other, and the SOCKS
    connectors in common use override `_wrap_create_connection`: private names, but stable ones.
    """

    def __init__(
        self,
        guard: GuardPolicy,
        resolver: AbstractResolver,
        pool: PoolSize,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(
            resolver=resolver,
            limit=pool.total,
            limit_per_host=pool.per_host,
            keepalive_timeout=30,
            ttl_dns_cache=60,
            ssl=True if tls is None else tls,
        )
        self._guard = guard
        handler: type[ResponseHandler] = Channel
        self._factory = functools.partial(handler, loop=self._loop)

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> ResponseHandler:
        began = time.perf_counter()
        # one limit for lookup, TCP, proxy and TLS together; that of the library is per step
        try:
            async with asyncio.timeout(timeout.sock_connect):
                channel = await super()._create_connection(req, traces, timeout)
        except (ClientConnectorError, ClientHttpProxyError):
            raise
        except ClientError as error:
            if req.proxy is None:
                raise
            # there was no tunnel yet: the error is not that of the target
            raise proxy_failure(error, str(req.proxy)) from error
        stopwatch.get().connect = time.perf_counter() - began
        assert isinstance(channel, Channel)
        self._verify(channel, self._guarded_host(req))
        return channel

    async def _resolve_host(
        self, host: str, port: int, traces: Sequence[Trace] | None = None
    ) -> list[ResolveResult]:
        # the library does not resolve literals, such as the address of a proxy
        self._guard.check_literal(f"[{host}]" if ":" in host else host)
        began = time.perf_counter()
        try:
            return await super()._resolve_host(host, port, traces)
        finally:
            stopwatch.get().dns = time.perf_counter() - began

    def _guarded_host(self, req: ClientRequest) -> str:
        return (req.proxy or req.url).raw_host or ""

    def _verify(self, channel: Channel, host: str) -> None:
        """Check the connected address, whatever DNS returned before."""
        assert channel.transport is not None
        peer = channel.transport.get_extra_info("peername")
        channel.peer = str(peer[0]) if peer else ""
        try:
            self._guard.check_address(channel.peer, host)
        except GiveUp:
            channel.abort()
            raise


class SocksConnector(GuardedConnector):
    """Connects through one SOCKS5 proxy, which resolves the names of targets."""

    def __init__(
        self,
        proxy: ProxySpec,
        guard: GuardPolicy,
        resolver: GuardedResolver,
        pool: PoolSize,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(guard, resolver, pool, tls)
        self._proxy = proxy

    def _guarded_host(self, req: ClientRequest) -> str:  # noqa: ARG002 - the proxy is the peer
        return self._proxy.host

    async def _resolve_host(
        self,
        host: str,
        port: int,
        traces: Sequence[Trace] | None = None,  # noqa: ARG002 - part of the signature
    ) -> list[ResolveResult]:
        return [_result(host, host, port, socket.AF_UNSPEC)]  # the proxy resolves the name

    async def _wrap_create_connection(
        self,
        *args: Any,
        addr_infos: list[AddrInfoType],
        req: ClientRequest,
        timeout: ClientTimeout,
        client_error: type[Exception] = ClientConnectorError,
        **kwargs: Any,
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        host, port = addr_infos[0][4][:2]
        sock = await self._tunnel(str(host), int(port), timeout.sock_connect)
        return await self._wrap_existing_connection(
            *args, req=req, timeout=timeout, client_error=client_error, sock=sock, **kwargs
        )

    async def _tunnel(self, host: str, port: int, timeout: float | None) -> socket.socket:
        proxy = self._proxy
        found = await super()._resolve_host(proxy.host.strip("[]"), proxy.port)
        from python_socks.async_.asyncio import Proxy  # few crawls have proxies

        tunnel = Proxy(
            ProxyType.SOCKS5,
            found[0]["host"],
            proxy.port,
            proxy.username,
            proxy.password,
            rdns=True,
        )
        try:
            return await tunnel.connect(host, port, timeout=timeout)
        except (ProxyError, OSError) as error:
            raise socks_failure(error, proxy) from error


# lookups that hang must not use up the threads of the process
_THREADS = 16


class NameResolver(Protocol):
    """Resolves names to addresses."""

    async def resolve(self, host: str) -> list[str]:
        """All addresses of a name; OSError if there are none."""

    async def close(self) -> None:
        """Release resources."""


class SystemResolver:
    """The resolver of the operating system, on separate threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="forager-dns")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def resolve(self, host: str) -> list[str]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _lookup, host)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        # the codec rejects labels that are empty or too long
        raise OSError(f"{host} is not a host name: {error_text(error)}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedResolver(AbstractResolver):
    """Returns only addresses that the guard allows."""

    def __init__(self, resolver: NameResolver, guard: GuardPolicy) -> None:
        self._resolver = resolver
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._resolver.resolve(host)
        if not addresses:
            raise OSError(f"{host} has no address")
        labels = {address: self._guard.refusal(address, host) for address in addresses}
        allowed = [address for address, label in labels.items() if label is None]
        if not allowed:
            raise refused(addresses[0], host, labels[addresses[0]] or "")
        return [_result(host, address, port, family) for address in allowed]

    async def close(self) -> None:
        """The owner of the resolver closes it."""


def _result(host: str, address: str, port: int, family: socket.AddressFamily) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
