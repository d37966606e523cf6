from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from forager.errors import ErrorKind, GiveUp, Retry
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import SystemResolver
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Request, ResponseLimits
from servers.hostile import PAGE, HostileServer


class Zone:
    """A resolver with fixed answers, which each name returns one after the other."""

    def __init__(self, **names: Sequence[list[str]]) -> None:
        self._answers = {name: list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        answers = self._answers.get(host.partition(".")[0])
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def close(self) -> None:
        """Nothing is held."""


def options(zone: Zone, guard: GuardPolicy | None = None) -> ClientOptions:
    limits = ResponseLimits(connect=2, read=2, total=5)
    return ClientOptions("t", limits=limits, guard=guard or GuardPolicy(), resolver=zone)


async def test_a_private_address_behind_a_public_name(server: HostileServer) -> None:
    async with Client(options(Zone(inner=[["127.0.0.1"]]))) as client:
        with pytest.raises(GiveUp) as caught:
            await client.fetch(Request(f"http://inner.example:{server.port}/ok"))
    assert caught.value.kind is ErrorKind.NOT_ALLOWED
    assert "inner.example resolves to 127.0.0.1" in caught.value.message
    assert "--allow-private" in str(caught.value)
    assert server.connections == 0


async def test_only_the_allowed_addresses_of_a_name_are_connected_to(server: HostileServer) -> None:
    guard = GuardPolicy(allow_networks=(ip_network("127.0.0.1/32"),))
    zone = Zone(mixed=[["169.254.169.254", "127.0.0.2", "127.0.0.1"]])
    async with Client(options(zone, guard)) as client:
        response = await client.fetch(Request(f"http://mixed.example:{server.port}/ok"))
    assert (response.body, response.peer) == (PAGE, "127.0.0.1")


async def test_rebinding_between_lookup_and_connection_is_impossible(server: HostileServer) -> None:
    # the first answer is allowed, the second is not: a client that looks the name up once to
    # check it and once more to connect would reach the second
    guard = GuardPolicy(allow_networks=(ip_network("127.0.0.1/32"),))
    zone = Zone(rebind=[["127.0.0.1"], ["127.0.0.2"]])
    async with Client(options(zone, guard)) as client:
        response = await client.fetch(Request(f"http://rebind.example:{server.port}/ok"))
        assert response.peer == "127.0.0.1"
        assert zone.asked == ["rebind.example"]


async def test_rebinding_between_two_requests_is_refused(server: HostileServer) -> None:
    guard = GuardPolicy(allow_networks=(ip_network("127.0.0.1/32"),))
    zone = Zone(rebind=[["127.0.0.1"], ["127.0.0.2"]])
    url = f"http://rebind.example:{server.port}/ok"
    async with Client(options(zone, guard)) as client:
        await client.fetch(Request(url))
    async with Client(options(zone, guard)) as client:
        with pytest.raises(GiveUp, match=r"127\.0\.0\.2"):
            await client.fetch(Request(url))
    assert server.connections == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
async def test_a_literal_is_refused_before_any_connection(server: HostileServer, host: str) -> None:
    zone = Zone()
    async with Client(options(zone)) as client:
        with pytest.raises(GiveUp) as caught:
            await client.fetch(Request(f"http://{host}:{server.port}/ok"))
    assert caught.value.kind is ErrorKind.NOT_ALLOWED
    assert (server.connections, zone.asked) == (0, [])


async def test_an_allowed_host_may_be_private(server: HostileServer) -> None:
    guard = GuardPolicy(allow_hosts=frozenset({"wiki.example"}))
    async with Client(options(Zone(wiki=[["127.0.0.1"]], evil=[["127.0.0.1"]]), guard)) as client:
        assert (await client.fetch(Request(f"http://wiki.example:{server.port}/ok"))).status == 200
        with pytest.raises(GiveUp):
            await client.fetch(Request(f"http://evil.example:{server.port}/ok"))


async def test_a_name_that_does_not_exist_is_a_network_failure() -> None:
    async with Client(options(Zone())) as client:
        with pytest.raises(Retry) as caught:
            await client.fetch(Request("http://missing.example/"))
    assert caught.value.kind is ErrorKind.NETWORK
    assert "cannot be resolved: Name or service not known" in caught.value.message


async def test_a_name_without_addresses_is_a_network_failure() -> None:
    async with Client(options(Zone(empty=[[]]))) as client:
        with pytest.raises(Retry, match="has no address"):
            await client.fetch(Request("http://empty.example/"))


async def test_the_system_knows_localhost() -> None:
    resolver = SystemResolver()
    try:
        assert {"127.0.0.1", "::1"} & set(await resolver.resolve("localhost"))
        with pytest.raises(OSError, match="not a host name"):
            await resolver.resolve("a" * 64 + ".example")
    finally:
        await resolver.close()
