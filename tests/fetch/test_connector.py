"""Requests through real proxies."""

from __future__ import annotations

import pytest

from forager.errors import ErrorKind, GiveUp, Retry, RotateProxy
from forager.fetch.client import Client, ClientOptions
from forager.fetch.failure import classify_status
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.proxy import ProxyScheme, ProxySpec
from forager.fetch.response import Request, ResponseLimits
from servers.certificates import Authority
from servers.hostile import PAGE, HostileServer, SilentServer
from servers.proxies import HttpProxy, Socks5Proxy

NAMES = {"site.example": "127.0.0.1"}
USER, PASSWORD = "ann", "s3cret"
ProxyServer = HttpProxy | Socks5Proxy


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


class LocalProxy:
    """Resolves the proxy's own name, and fails the test if asked for a target's."""

    async def resolve(self, host: str) -> list[str]:
        assert host == "proxy.example"
        return ["127.0.0.1"]

    async def close(self) -> None:
        """Nothing is held."""


def new_client(authority: Authority, proxy_guard: GuardPolicy | None = None) -> Client:
    options = ClientOptions(
        "t",
        limits=ResponseLimits(connect=5, read=5, total=10),
        proxy_guard=proxy_guard or GuardPolicy(allow_private=True),
        resolver=LocalProxy(),
        tls=authority.client_context(),
    )
    return Client(options)


def make_proxy(scheme: str, authority: Authority) -> ProxyServer:
    if scheme == "socks5":
        return Socks5Proxy(USER, PASSWORD, NAMES)
    tls = authority.server_context("proxy.example") if scheme == "https" else None
    return HttpProxy(USER, PASSWORD, NAMES, tls)


def spec(proxy: ProxyServer, scheme: str, password: str = PASSWORD) -> ProxySpec:
    return ProxySpec(ProxyScheme(scheme), "proxy.example", proxy.port, USER, password)


SCHEMES = pytest.mark.parametrize("scheme", ["http", "https", "socks5"])


@SCHEMES
@pytest.mark.parametrize("target", ["http", "https"])
async def test_the_proxy_fetches_and_resolves(
    authority: Authority, scheme: str, target: str
) -> None:
    tls = authority.server_context("site.example") if target == "https" else None
    async with (
        HostileServer(tls) as site,
        make_proxy(scheme, authority) as proxy,
        new_client(authority) as client,
    ):
        url = f"{target}://site.example:{site.port}/echo"
        response = await client.fetch(Request(url, proxy=spec(proxy, scheme)))
        assert response.status == 200
        assert proxy.targets == [f"site.example:{site.port}"]
        assert b"Proxy-Authorization" not in site.requests[0]
        assert response.peer == "127.0.0.1"


@SCHEMES
async def test_wrong_credentials_rotate_the_proxy(authority: Authority, scheme: str) -> None:
    tls = authority.server_context("site.example")
    async with (
        HostileServer(tls) as site,
        make_proxy(scheme, authority) as proxy,
        new_client(authority) as client,
    ):
        request = Request(
            f"https://site.example:{site.port}/ok", proxy=spec(proxy, scheme, "wrong")
        )
        with pytest.raises(RotateProxy) as caught:
            await client.fetch(request)
        assert f"{scheme}://proxy.example:{proxy.port}" in caught.value.message
        assert "wrong" not in str(caught.value)
        assert site.connections == 0


async def test_407_to_a_plain_request_rotates_the_proxy(
    authority: Authority, server: HostileServer
) -> None:
    async with make_proxy("http", authority) as proxy, new_client(authority) as client:
        url = f"http://site.example:{server.port}/ok"
        response = await client.fetch(Request(url, proxy=spec(proxy, "http", "wrong")))
        assert isinstance(classify_status(response.status, response.headers), RotateProxy)


@SCHEMES
async def test_a_dead_proxy_is_rotated(authority: Authority, scheme: str) -> None:
    async with make_proxy(scheme, authority) as proxy:
        dead = spec(proxy, scheme)
    async with new_client(authority) as client:
        with pytest.raises(RotateProxy) as caught:
            await client.fetch(Request("http://site.example/", proxy=dead))
    assert caught.value.kind is ErrorKind.NETWORK


@SCHEMES
async def test_a_proxy_that_never_answers_is_rotated(authority: Authority, scheme: str) -> None:
    async with SilentServer() as server, new_client(authority) as client:
        silent = ProxySpec(ProxyScheme(scheme), "proxy.example", server.port)
        request = Request("https://site.example/", proxy=silent, limits=ResponseLimits(connect=0.2))
        with pytest.raises(RotateProxy) as caught:
            await client.fetch(request)
    assert caught.value.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("greeting", [b"", b"220 mail.example ESMTP\r\n\r\n"])
async def test_what_is_no_proxy_is_rotated(
    authority: Authority, server: HostileServer, scheme: str, greeting: bytes
) -> None:
    server.greeting = greeting
    wrong = ProxySpec(ProxyScheme(scheme), "proxy.example", server.port)
    request = Request("https://site.example/", proxy=wrong, limits=ResponseLimits(connect=0.5))
    async with new_client(authority) as client:
        with pytest.raises(RotateProxy):
            await client.fetch(request)


async def test_a_target_the_socks_proxy_cannot_reach_is_not_its_fault(authority: Authority) -> None:
    async with HostileServer() as gone:
        url = f"http://site.example:{gone.port}/"
    async with make_proxy("socks5", authority) as proxy, new_client(authority) as client:
        with pytest.raises(Retry) as caught:
            await client.fetch(Request(url, proxy=spec(proxy, "socks5")))
    assert type(caught.value) is Retry
    assert caught.value.kind is ErrorKind.NETWORK


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_a_bad_certificate_behind_a_proxy_is_the_targets_fault(
    authority: Authority, scheme: str
) -> None:
    async with (
        HostileServer(authority.server_context("other.example")) as site,
        make_proxy(scheme, authority) as proxy,
        new_client(authority) as client,
    ):
        url = f"https://site.example:{site.port}/ok"
        with pytest.raises(GiveUp) as caught:
            await client.fetch(Request(url, proxy=spec(proxy, scheme)))
    assert caught.value.kind is ErrorKind.TLS


@SCHEMES
@pytest.mark.parametrize("host", ["proxy.example", "127.0.0.1"])
async def test_a_private_proxy_must_be_allowed(
    authority: Authority, scheme: str, host: str
) -> None:
    async with (
        make_proxy(scheme, authority) as proxy,
        new_client(authority, GuardPolicy(allow_hosts=frozenset({"site.example"}))) as client,
    ):
        private = ProxySpec(ProxyScheme(scheme), host, proxy.port, USER, PASSWORD)
        with pytest.raises(GiveUp) as caught:
            await client.fetch(Request("http://site.example/", proxy=private))
        assert caught.value.kind is ErrorKind.NOT_ALLOWED
        assert proxy.connections == 0


@SCHEMES
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "2130706433"])
async def test_a_proxy_is_not_asked_for_private_targets(
    authority: Authority, scheme: str, host: str
) -> None:
    async with make_proxy(scheme, authority) as proxy, new_client(authority) as client:
        with pytest.raises(GiveUp) as caught:
            await client.fetch(Request(f"http://{host}/", proxy=spec(proxy, scheme)))
        assert caught.value.kind is ErrorKind.NOT_ALLOWED
        assert proxy.connections == 0


async def test_the_default_proxy_is_used(authority: Authority, server: HostileServer) -> None:
    async with HttpProxy(names=NAMES) as proxy:
        options = ClientOptions(
            "t",
            proxy=ProxySpec(ProxyScheme.HTTP, "127.0.0.1", proxy.port),
            proxy_guard=GuardPolicy(allow_private=True),
        )
        async with Client(options) as client:
            response = await client.fetch(Request(f"http://site.example:{server.port}/ok"))
        assert response.body == PAGE
        assert proxy.targets == [f"site.example:{server.port}"]


async def test_socks_connections_are_used_again(
    authority: Authority, server: HostileServer
) -> None:
    async with make_proxy("socks5", authority) as proxy, new_client(authority) as client:
        request = Request(f"http://site.example:{server.port}/ok", proxy=spec(proxy, "socks5"))
        await client.fetch(request)
        await client.fetch(request)
        assert (proxy.connections, server.connections) == (1, 1)
