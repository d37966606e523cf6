"""The client: one URL in, one response out, or one classified failure."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import ada_url
import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from forager.errors import ErrorKind, GiveUp, WorkFailed
from forager.fetch.body import ACCEPTED, Body
from forager.fetch.connector import (
    Channel,
    GuardedConnector,
    GuardedResolver,
    NameResolver,
    PoolSize,
    SocksConnector,
    Stopwatch,
    SystemResolver,
    stopwatch,
)
from forager.fetch.failure import classify
from forager.fetch.guard import PUBLIC, GuardPolicy
from forager.fetch.proxies.proxy import ProxyScheme, ProxySpec
from forager.fetch.response import Request, Response, ResponseLimits, Timing, is_public_header

_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_WITHOUT_EFFECT = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options of all requests of a client."""

    user_agent: str
    limits: ResponseLimits = field(default_factory=ResponseLimits)
    guard: GuardPolicy = field(default_factory=GuardPolicy)
    proxy_guard: GuardPolicy | None = None  # for the proxies' own addresses; `guard` if None
    headers: Mapping[str, str] = field(default_factory=dict)
    # the URLs that get headers that may be secrets, such as Authorization; all if None
    trusts: Callable[[str], bool] | None = None
    proxy: ProxySpec | None = None
    pool: PoolSize = field(default_factory=PoolSize)
    resolver: NameResolver | None = None  # the system's if None; its owner closes it
    tls: ssl.SSLContext | None = None  # the system's certificates if None


class _Answer(aiohttp.ClientResponse):
    """Keeps the address of the peer, which is unknown once the connection is released."""

    peer: str = ""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        channel = connection.protocol
        if isinstance(channel, Channel):
            self.peer = channel.peer
        return await super().start(connection)


class Client:
    """Sends HTTP requests through the guard, each once, without redirects and cookies.

    It knows no robots.txt, budget or retry: `Sender` and `Fetching` add them. WorkFailed is raised
    for everything that is not a response; its class determines whether a retry can help.

        async with Client(ClientOptions(user_agent="example-bot/1.0")) as client:
            response = await client.fetch(Request("https://example.org/"))
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._resolver = options.resolver or SystemResolver()
        self._timeout = _timeout(options.limits)
        self._private = {k: v for k, v in options.headers.items() if not is_public_header(k)}
        self._sessions: dict[ProxySpec | str, aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        if self._options.resolver is None:
            await self._resolver.close()

    async def fetch(self, request: Request) -> Response:
        """The response, whatever its status; raises WorkFailed without one."""
        limits = request.limits or self._options.limits
        proxy = request.proxy or self._options.proxy
        watch = Stopwatch(time.perf_counter())
        token = stopwatch.set(watch)
        try:
            url = self._checked(request, proxy)
            return await self._exchange(url, request, proxy, limits, watch)
        except WorkFailed:
            raise
        except Exception as error:
            is_reused = watch.is_reused and request.method in _WITHOUT_EFFECT
            raise classify(error, limits, proxy, is_reused=is_reused) from error
        finally:
            stopwatch.reset(token)

    def _checked(self, request: Request, proxy: ProxySpec | None) -> str:
        """The normalized URL; raises an error if it may not be fetched."""
        text, guard = request.url, PUBLIC if request.is_public else self._options.guard
        try:
            parts = ada_url.parse_url(text, ("protocol", "hostname", "href"))
        except ValueError:
            raise GiveUp(f"not a URL: {text[:200]!r}", kind=ErrorKind.VALIDATION) from None
        if parts["protocol"] not in ("http:", "https:"):
            raise GiveUp(f"not an http URL: {text[:200]!r}", kind=ErrorKind.VALIDATION)
        if proxy is None:
            guard.check_literal(parts["hostname"])
        else:
            guard.check_unresolved(parts["hostname"])
        return str(parts["href"]).partition("#")[0]

    async def _exchange(
        self,
        url: str,
        request: Request,
        proxy: ProxySpec | None,
        limits: ResponseLimits,
        watch: Stopwatch,
    ) -> Response:
        answer = await self._send(url, request, proxy, limits)
        try:
            watch.first_byte = time.perf_counter() - watch.started
            _check_headers(answer, limits)
            body = await _read(answer, limits)
        except BaseException:
            answer.close()  # not back to the pool: unread data may be left on it
            raise
        return _response(url, answer, body, watch)

    async def _send(
        self, url: str, request: Request, proxy: ProxySpec | None, limits: ResponseLimits
    ) -> _Answer:
        private = {} if request.is_anonymous else self._private_headers(url)
        headers = {**private, **_headers(request)}
        proxy_url, proxy_headers = None, None
        if proxy is not None and proxy.scheme is not ProxyScheme.SOCKS5:
            proxy_url = URL(proxy.address)
            if proxy.authorization is not None:
                # a tunneled request must not carry it: the target would read it
                authorization = {"Proxy-Authorization": proxy.authorization}
                if url.startswith("https:"):
                    proxy_headers = authorization
                else:
                    headers.update(authorization)
        answer = await self._session(proxy, is_public=request.is_public).request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=request.body,
            allow_redirects=False,
            proxy=proxy_url,
            proxy_headers=proxy_headers,
            timeout=self._timeout if request.limits is None else _timeout(limits),
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            max_headers=limits.header_count,
        )
        assert isinstance(answer, _Answer)
        return answer

    def _private_headers(self, url: str) -> Mapping[str, str]:
        trusts = self._options.trusts
        if not self._private or (trusts is not None and not trusts(url)):
            return {}
        return self._private

    def _session(self, proxy: ProxySpec | None, *, is_public: bool) -> aiohttp.ClientSession:
        """One pool for direct connections, one for those to public addresses only, one for HTTP
        proxies, and one per SOCKS proxy."""
        if proxy is None:
            key: ProxySpec | str = "public" if is_public else "direct"
        else:
            key = proxy if proxy.scheme is ProxyScheme.SOCKS5 else "proxied"
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = self._new_session(key)
        return session

    def _new_session(self, key: ProxySpec | str) -> aiohttp.ClientSession:
        options = self._options
        session = aiohttp.ClientSession(
            connector=self._new_connector(key),
            headers={
                "User-Agent": options.user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": ACCEPTED,
                **{k: v for k, v in options.headers.items() if is_public_header(k)},
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            response_class=_Answer,
        )
        # it would repeat a request whose connection breaks, without a slot of the host
        session._retry_connection = False
        return session

    def _new_connector(self, key: ProxySpec | str) -> GuardedConnector:
        options = self._options
        guards = {"direct": options.guard, "public": PUBLIC}
        guard = guards.get(str(key)) or options.proxy_guard or options.guard
        resolver = GuardedResolver(self._resolver, guard)
        if isinstance(key, ProxySpec):
            return SocksConnector(key, guard, resolver, options.pool, options.tls)
        return GuardedConnector(guard, resolver, options.pool, options.tls)


def _timeout(limits: ResponseLimits) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=limits.total, sock_connect=limits.connect, sock_read=limits.read
    )


def _headers(request: Request) -> dict[str, str]:
    headers = dict(request.headers)
    if request.etag is not None:
        headers["If-None-Match"] = request.etag
    if request.last_modified is not None:
        headers["If-Modified-Since"] = request.last_modified
    return headers


def _check_headers(answer: _Answer, limits: ResponseLimits) -> None:
    # the parser limits each field and their number, not the sum
    if sum(map(len, chain.from_iterable(answer.raw_headers))) > limits.header_bytes:
        raise GiveUp(
            f"the response headers go past the limit of {limits.header_bytes:,} bytes",
            kind=ErrorKind.TOO_LARGE,
        )


async def _read(answer: _Answer, limits: ResponseLimits) -> Body:
    body = Body(answer.headers.get("Content-Encoding", ""), limits.body)
    if answer.method != "HEAD":
        body.expect(answer.content_length)
    while chunk := await answer.content.readany():
        body.feed(chunk)
    return body


def _response(url: str, answer: _Answer, body: Body, watch: Stopwatch) -> Response:
    content = body.finish()
    timing = Timing(watch.dns, watch.connect, watch.first_byte, time.perf_counter() - watch.started)
    version = answer.version
    return Response(
        url=url,
        status=answer.status,
        reason=answer.reason or "",
        headers=answer.headers,
        body=content,
        wire_size=body.wire_size,
        timing=timing,
        peer=answer.peer,
        http_version=f"{version.major}.{version.minor}" if version else "",
    )
