"""What a probe of a proxy finds out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fetch.proxy_rows import LOCAL, OPTIONS, PASSWORD, add
from forager.fetch.client import ClientOptions
from forager.fetch.proxies.probe import ProbeResult, probe
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from servers.base import LoopbackServer
from servers.certificates import Authority
from servers.hostile import HostileServer
from servers.proxies import HttpProxy, Socks5Proxy


async def probed(
    proxies: Proxies, address: str, url: str | None = None, options: ClientOptions = OPTIONS
) -> ProbeResult:
    (proxy_id,) = await add(proxies, address)
    return await probe(await proxies.open(proxy_id), options, url)


@pytest.mark.parametrize(("scheme", "kind"), [("http", HttpProxy), ("socks5", Socks5Proxy)])
async def test_a_probe_distinguishes_good_and_bad_credentials(
    proxies: Proxies, scheme: str, kind: type[HttpProxy | Socks5Proxy]
) -> None:
    async with HostileServer() as site, kind("ann", PASSWORD) as proxy:
        at = f"127.0.0.1:{proxy.port}"
        for url, status in ((None, None), (f"{site.url}/ok", 200)):
            good = await probed(proxies, f"{scheme}://ann:{PASSWORD}@{at}", url)
            assert (good.ok, good.status, good.error) == (True, status, None)
            for who in (f"ann:{PASSWORD}x@", f"ann:{PASSWORD}x@", "ann@", ""):
                bad = await probed(proxies, f"{scheme}://{who}{at}", url)
                assert not bad.ok
                assert bad.error
                assert PASSWORD not in bad.error


async def test_an_https_proxy_is_probed_through_its_own_certificate(
    proxies: Proxies, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    async with HttpProxy("ann", PASSWORD, tls=authority.server_context("localhost")) as proxy:
        address = f"https://ann:{PASSWORD}@localhost:{proxy.port}"
        trusting = ClientOptions(user_agent="x", guard=LOCAL, tls=authority.client_context())
        assert (await probed(proxies, address, options=trusting)).ok
        assert not (await probed(proxies, address)).ok


class Mumbler(LoopbackServer):
    """Answers everything with something that no proxy says."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()


async def test_what_is_no_proxy_fails_the_probe(proxies: Proxies) -> None:
    async with Mumbler() as server:
        at = f"127.0.0.1:{server.port}"
        for scheme in ("http", "socks5"):
            assert not (await probed(proxies, f"{scheme}://{at}")).ok
    for scheme in ("http", "socks5"):
        assert not (await probed(proxies, f"{scheme}://{at}")).ok


async def test_a_probe_of_a_url_wants_an_answer_that_can_be_used(proxies: Proxies) -> None:
    async with HostileServer() as site, HttpProxy() as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        missing = await probed(proxies, address, f"{site.url}/status/404")
        assert (missing.ok, missing.status) == (False, 404)
        reset = await probed(proxies, address, f"{site.url}/reset")
        assert (reset.ok, reset.status) == (False, None)


class LoopbackResolver:
    async def resolve(self, host: str) -> list[str]:
        return ["127.0.0.1"]

    async def close(self) -> None:
        pass


async def test_a_probe_respects_the_guards(proxies: Proxies) -> None:
    async with HostileServer() as site, HttpProxy() as proxy:
        public = ClientOptions(user_agent="x")
        refused = await probed(proxies, f"http://127.0.0.1:{proxy.port}", site.url, public)
        assert "loopback" in (refused.error or "")
        # added as a public name, it means a private address by the time it is used
        added = await proxies.add(ProxySpec.parse(f"http://proxy.example:{proxy.port}"))
        rebound = ClientOptions(user_agent="x", guard=LOCAL, resolver=LoopbackResolver())
        result = await probe(await proxies.open(added.id), rebound, f"{site.url}/ok")
        assert "proxy.example resolves to 127.0.0.1" in (result.error or "")
    assert proxy.targets == []
