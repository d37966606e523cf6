from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from forager.errors import ErrorKind, GiveUp, Retry, SlowDown, StaleConnection, WorkFailed
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.failure import classify_status
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Method, Request, ResponseLimits
from servers.certificates import Authority
from servers.hostile import ETAG, LAST_MODIFIED, PAGE, HostileServer, bomb

LOCAL = GuardPolicy(allow_private=True)


async def failure(client: Client, url: str, limits: ResponseLimits | None = None) -> WorkFailed:
    with pytest.raises(WorkFailed) as caught:
        await client.fetch(Request(url, limits=limits))
    return caught.value


async def test_a_page_with_all_that_is_known_about_it(
    client: Client, server: HostileServer
) -> None:
    response = await client.fetch(Request(f"{server.url}/ok#part"))
    assert response.url == f"{server.url}/ok"
    assert (response.status, response.body, response.http_version) == (200, PAGE, "1.1")
    assert response.headers["etag"] == ETAG
    assert response.wire_size == len(PAGE)
    assert response.peer == "127.0.0.1"
    assert response.timing.connect is not None
    assert 0 < response.timing.first_byte <= response.timing.total
    assert (response.redirect, response.retry_after) == (None, None)


async def test_requests_have_user_agent_and_accept_headers(
    client: Client, server: HostileServer
) -> None:
    response = await client.fetch(Request(f"{server.url}/echo", headers={"X-Extra": "yes"}))
    head = response.body.decode()
    assert "User-Agent: ForagerTest/1.0\r\n" in head
    assert "Accept-Encoding: gzip, deflate, br, zstd\r\n" in head
    assert "X-Extra: yes\r\n" in head
    assert "Cookie" not in head


async def test_the_url_arrives_as_it_was_normalized(client: Client, server: HostileServer) -> None:
    response = await client.fetch(Request(f"{server.url}/echo/%7Eä/./x?q=a|b&c=%2F&d='\"+"))
    line = response.body.split(b"\r\n")[0]
    assert line == b"GET /echo/%7E%C3%A4/x?q=a|b&c=%2F&d=%27%22+ HTTP/1.1"


async def test_connections_are_used_again(client: Client, server: HostileServer) -> None:
    first = await client.fetch(Request(f"{server.url}/ok"))
    second = await client.fetch(Request(f"{server.url}/encoded/gzip"))
    assert server.connections == 1
    assert first.timing.connect is not None
    assert second.timing.connect is None


async def test_connections_are_limited(server: HostileServer) -> None:
    options = ClientOptions(user_agent="t", guard=LOCAL, pool=PoolSize(total=3))
    async with Client(options) as client:
        await asyncio.gather(*(client.fetch(Request(f"{server.url}/ok")) for _ in range(30)))
    assert server.connections == 3
    assert len(server.requests) == 30


async def test_a_connection_closed_meanwhile_is_replaced(
    client: Client, server: HostileServer
) -> None:
    await client.fetch(Request(f"{server.url}/long"))
    response = await client.fetch(Request(f"{server.url}/ok"))
    assert response.body == PAGE


async def test_head_has_no_body(client: Client, server: HostileServer) -> None:
    response = await client.fetch(Request(f"{server.url}/ok", method=Method.HEAD))
    assert (response.status, response.body) == (200, b"")
    assert response.headers["Content-Length"] == str(len(PAGE))
    await client.fetch(Request(f"{server.url}/ok"))
    assert server.connections == 1


@pytest.mark.parametrize("validator", [{"etag": ETAG}, {"last_modified": LAST_MODIFIED}])
async def test_an_unchanged_page_is_not_sent_again(
    client: Client, server: HostileServer, validator: dict[str, str]
) -> None:
    response = await client.fetch(Request(f"{server.url}/ok", **validator))  # type: ignore[arg-type]
    assert (response.status, response.body) == (304, b"")


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw-deflate", "br", "zstd"])
async def test_content_codings(client: Client, server: HostileServer, coding: str) -> None:
    response = await client.fetch(Request(f"{server.url}/encoded/{coding}"))
    assert response.body == PAGE
    assert 0 < response.wire_size < len(PAGE)


async def test_a_redirect_is_reported_not_followed(client: Client, server: HostileServer) -> None:
    response = await client.fetch(Request(f"{server.url}/redirect?to=../else where/%25C3%25A9"))
    assert response.status == 302
    assert response.redirect == f"{server.url}/else%20where/%C3%A9"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("Retry-After=7", 7.0),
        ("Retry-After=Sat,+15+Nov+2025+08:01:00+GMT&Date=Sat,+15+Nov+2025+08:00:00+GMT", 60.0),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_slow_down_in_both_forms(
    client: Client, server: HostileServer, status: int, query: str, seconds: float | None
) -> None:
    response = await client.fetch(Request(f"{server.url}/status/{status}?{query}"))
    assert response.retry_after == seconds
    failure = classify_status(response.status, response.headers)
    assert isinstance(failure, SlowDown)
    assert failure.retry_after == seconds


@pytest.mark.parametrize(
    ("path", "action", "kind", "words"),
    [
        ("claim", GiveUp, ErrorKind.TOO_LARGE, "10,000,000,000"),
        ("endless", GiveUp, ErrorKind.TOO_LARGE, "limit of 1,048,576 bytes"),
        ("bomb/gzip", GiveUp, ErrorKind.TOO_LARGE, "unpacks"),
        ("bomb/br", GiveUp, ErrorKind.TOO_LARGE, "unpacks"),
        ("bomb/zstd", GiveUp, ErrorKind.TOO_LARGE, "unpacks"),
        ("endless-head", GiveUp, ErrorKind.TOO_LARGE, "headers"),
        ("long-header", GiveUp, ErrorKind.TOO_LARGE, "headers"),
        ("broken/gzip", GiveUp, ErrorKind.PARSE, "gzip"),
        ("cut/gzip", Retry, ErrorKind.NETWORK, "ended"),
        ("short", Retry, ErrorKind.NETWORK, "broke off"),
        ("reset", Retry, ErrorKind.NETWORK, "connection"),
        ("reset-body", Retry, ErrorKind.NETWORK, "connection|broke off"),
        ("close", Retry, ErrorKind.NETWORK, "without an answer"),
        ("garbage", Retry, ErrorKind.NETWORK, "not HTTP"),
        ("bad-chunks", Retry, ErrorKind.NETWORK, "broke off"),
    ],
)
async def test_misbehaviour_is_classified(
    client: Client,
    server: HostileServer,
    path: str,
    action: type[WorkFailed],
    kind: ErrorKind,
    words: str,
) -> None:
    if path.startswith("bomb/"):
        bomb(path.removeprefix("bomb/"))
    error = await failure(client, f"{server.url}/{path}")
    assert (type(error), error.kind) == (action, kind)
    assert any(word in error.message for word in words.split("|")), error.message
    # and the client is none the worse for it
    assert (await client.fetch(Request(f"{server.url}/ok"))).body == PAGE


@pytest.mark.parametrize("path", ["reset", "reset-body", "close", "garbage"])
async def test_a_request_is_sent_once(client: Client, server: HostileServer, path: str) -> None:
    await failure(client, f"{server.url}/{path}")
    assert len(server.requests) == 1


@pytest.mark.parametrize("path", ["reset", "close"])
async def test_a_kept_connection_that_breaks_is_reported_as_stale(
    client: Client, server: HostileServer, path: str
) -> None:
    await client.fetch(Request(f"{server.url}/ok"))
    assert type(await failure(client, f"{server.url}/{path}")) is StaleConnection
    assert len(server.requests) == 2
    # a form that was posted may have had an effect
    await client.fetch(Request(f"{server.url}/ok"))
    with pytest.raises(Retry) as caught:
        await client.fetch(Request(f"{server.url}/{path}", method=Method.POST))
    assert type(caught.value) is Retry
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("path", "limits", "words"),
    [
        ("silent", ResponseLimits(read=0.1), "nothing for 0.1 s"),
        ("slow-head", ResponseLimits(read=0.1), "nothing for 0.1 s"),
        ("drip", ResponseLimits(read=0.1), "nothing for 0.1 s"),
        ("silent", ResponseLimits(total=0.4), "complete within 0.4 s"),
        ("drip", ResponseLimits(total=0.4), "complete within 0.4 s"),
        ("slow-head", ResponseLimits(total=0.4), "complete within 0.4 s"),
    ],
)
async def test_silence_ends_in_a_timeout(
    client: Client, server: HostileServer, path: str, limits: ResponseLimits, words: str
) -> None:
    error = await failure(client, f"{server.url}/{path}", limits)
    assert (type(error), error.kind) == (Retry, ErrorKind.TIMEOUT)
    assert words in error.message


async def test_a_byte_at_a_time_ends_by_the_total_limit(
    client: Client, server: HostileServer
) -> None:
    async def trickle() -> None:
        while True:
            server.drip.release()
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(trickle())
    error = await failure(client, f"{server.url}/drip", ResponseLimits(read=5, total=0.5))
    dripping.cancel()
    assert error.kind is ErrorKind.TIMEOUT
    assert "complete within 0.5 s" in error.message


async def test_more_than_the_length_says_is_cut_off(client: Client, server: HostileServer) -> None:
    response = await client.fetch(Request(f"{server.url}/long"))
    assert response.body == PAGE


async def test_huge_bodies_cost_little_memory_and_little_traffic(
    client: Client, server: HostileServer
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for path in ("claim", "endless"):
        await failure(client, f"{server.url}/{path}")
    # what the kernel and the transports buffer on loopback comes on top of the limit
    assert server.sent < 64 * 1024 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


async def test_the_head_as_a_whole_is_limited(client: Client, server: HostileServer) -> None:
    query = "&".join(f"X-{n}={'x' * 1000}" for n in range(5))
    limits = ResponseLimits(header_bytes=4000)
    error = await failure(client, f"{server.url}/status/200?{query}", limits)
    assert error.kind is ErrorKind.TOO_LARGE


async def test_a_refused_connection_is_a_network_failure(client: Client) -> None:
    async with HostileServer() as gone:
        url = f"{gone.url}/ok"
    error = await failure(client, url)
    assert (type(error), error.kind) == (Retry, ErrorKind.NETWORK)
    assert "no connection" in error.message


@pytest.mark.parametrize("url", ["", "no url", "ftp://h/", "javascript:1", "http://[x", "//h/"])
async def test_what_is_no_web_address_is_refused(client: Client, url: str) -> None:
    error = await failure(client, url)
    assert (type(error), error.kind) == (GiveUp, ErrorKind.VALIDATION)


async def test_a_header_cannot_smuggle_another(client: Client, server: HostileServer) -> None:
    request = Request(f"{server.url}/ok", headers={"X-A": "1\r\nX-B: 2"})
    with pytest.raises(GiveUp) as caught:
        await client.fetch(request)
    assert caught.value.kind is ErrorKind.VALIDATION
    assert server.requests == []


@pytest.mark.parametrize("name", ["connect", "read", "total", "body"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        ResponseLimits(**{name: 0})


# --- TLS ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


class Everywhere:
    """A resolver for which every name lives on loopback."""

    async def resolve(self, host: str) -> list[str]:
        return ["127.0.0.1"]

    async def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
async def tls_client(authority: Authority) -> AsyncIterator[Client]:
    options = ClientOptions(
        user_agent="t",
        guard=LOCAL,
        limits=ResponseLimits(connect=5, total=10),
        resolver=Everywhere(),
        tls=authority.client_context(),
    )
    async with Client(options) as running:
        yield running


async def test_good_tls(tls_client: Client, authority: Authority) -> None:
    async with HostileServer(authority.server_context("good.example")) as server:
        response = await tls_client.fetch(Request(f"https://good.example:{server.port}/ok"))
    assert (response.body, response.peer) == (PAGE, "127.0.0.1")


async def test_a_certificate_for_another_host(tls_client: Client, authority: Authority) -> None:
    async with HostileServer(authority.server_context("good.example")) as server:
        error = await failure(tls_client, f"https://other.example:{server.port}/ok")
    assert (type(error), error.kind) == (GiveUp, ErrorKind.TLS)
    assert "mismatch" in error.message


async def test_a_certificate_without_a_trusted_authority(
    tls_client: Client, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path)
    async with HostileServer(stranger.server_context("good.example")) as server:
        error = await failure(tls_client, f"https://good.example:{server.port}/ok")
    assert (type(error), error.kind) == (GiveUp, ErrorKind.TLS)


async def test_plain_text_where_tls_was_expected(tls_client: Client, server: HostileServer) -> None:
    server.greeting = b"220 mail.example ESMTP\r\n"
    error = await failure(tls_client, f"https://good.example:{server.port}/ok")
    assert (type(error), error.kind) == (Retry, ErrorKind.TLS)


async def test_a_handshake_that_never_comes(tls_client: Client, server: HostileServer) -> None:
    url = f"https://good.example:{server.port}/ok"
    error = await failure(tls_client, url, ResponseLimits(connect=0.2))
    assert (type(error), error.kind) == (Retry, ErrorKind.TIMEOUT)
    assert "no connection within 0.2 s" in error.message
