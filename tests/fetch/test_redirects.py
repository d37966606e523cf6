from __future__ import annotations

import pytest

from forager.errors import ErrorKind, GiveUp
from forager.fetch.client import Client
from forager.fetch.redirects import Hop, follow
from forager.fetch.response import Request
from servers.hostile import ETAG, PAGE, HostileServer


async def test_follows_to_the_end(client: Client, server: HostileServer) -> None:
    start = f"{server.url}/redirect?to=/redirect?to=/ok%23part"
    response, hops = await follow(client, Request(start))
    assert response.body == PAGE
    assert response.url == f"{server.url}/ok"
    assert hops == (Hop(start, 302), Hop(f"{server.url}/redirect?to=/ok", 302))


async def test_a_loop_is_found(client: Client, server: HostileServer) -> None:
    with pytest.raises(GiveUp, match="in a loop") as caught:
        await follow(client, Request(f"{server.url}/loop/1"))
    assert caught.value.kind is ErrorKind.HTTP_SERVER
    assert len(server.requests) == 2


async def test_an_endless_chain_is_cut(client: Client, server: HostileServer) -> None:
    with pytest.raises(GiveUp, match="more than 5 times"):
        await follow(client, Request(f"{server.url}/spiral/1"), max_hops=5)
    assert len(server.requests) == 6


async def test_every_hop_is_checked_before_it_is_fetched(
    client: Client, server: HostileServer
) -> None:
    asked: list[str] = []

    async def no_third(url: str) -> None:
        asked.append(url)
        if url.endswith("/3"):
            raise GiveUp("out of scope", kind=ErrorKind.NOT_ALLOWED)

    with pytest.raises(GiveUp, match="out of scope"):
        await follow(client, Request(f"{server.url}/spiral/1"), no_third)
    assert asked == [f"{server.url}/spiral/2", f"{server.url}/spiral/3"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("to", ["javascript:alert(1)", "file:///etc/passwd", ""])
async def test_a_redirect_to_no_web_page(client: Client, server: HostileServer, to: str) -> None:
    with pytest.raises(GiveUp, match="which is no web page"):
        await follow(client, Request(f"{server.url}/redirect?to={to}"))


async def test_credentials_stay_with_their_origin(client: Client, server: HostileServer) -> None:
    request = Request(
        f"{server.url}/redirect?to=/echo", headers={"Authorization": "Bearer secret"}, etag=ETAG
    )
    near, _ = await follow(client, request)
    assert b"Bearer secret" in near.body
    assert b"If-None-Match" not in near.body
    async with HostileServer() as other:
        away = Request(f"{server.url}/redirect?to={other.url}/echo", headers=request.headers)
        far, _ = await follow(client, away)
    assert b"Bearer secret" not in far.body
