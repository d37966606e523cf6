"""Proxies are added, listed and refused; their passwords are stored encrypted and shown nowhere."""

from __future__ import annotations

import traceback
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path

import pytest
from pydantic import SecretStr

from fetch.proxy_rows import (
    HOST,
    LOCAL,
    OPTIONS,
    PASSWORD,
    add,
    crawl_once,
    fail,
    make_due,
    picked_id,
)
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed, NotFound, RotateProxy
from forager.fetch.client import Client
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.proxies.proxy import ProxySpec, ProxyState
from forager.fetch.proxies.service import Proxies, ProxyPool, parse_address
from forager.fetch.response import Request
from forager.logs import configure_logs
from forager.secrets import SecretsUnavailable, Vault
from forager.settings import Settings
from servers.hostile import HostileServer
from servers.proxies import HttpProxy, Socks5Proxy
from support.sql import fetch_row


async def test_a_password_is_stored_encrypted_and_comes_back(
    proxies: Proxies, database: Database
) -> None:
    spec = ProxySpec.parse(f"socks5://ann:{PASSWORD}@proxy.example:1080")
    added = await proxies.add(spec)
    assert added.is_new
    assert (await proxies.open(added.id)).spec == spec
    row = await fetch_row(database, "SELECT proxies::text, proxy_password FROM proxies")
    assert PASSWORD not in row[0]
    assert PASSWORD.encode() not in row[1]


async def test_adding_a_known_proxy_gives_it_the_new_password(proxies: Proxies) -> None:
    first = await proxies.add(ProxySpec.parse("http://ann:old@proxy.example:3128"))
    again = await proxies.add(ProxySpec.parse("http://ann:new@proxy.example:3128"))
    other = await proxies.add(ProxySpec.parse("http://bob:new@proxy.example:3128"))
    assert (again.id, again.is_new, other.is_new) == (first.id, False, True)
    assert (await proxies.open(first.id)).spec.password == "new"


async def test_the_list_says_where_it_continues(proxies: Proxies) -> None:
    ids = await add(proxies, *(f"http://p{n}.example" for n in range(5)))
    first = await proxies.page(limit=3)
    rest = await proxies.page(limit=3, after=int(first.next_cursor or 0))
    assert [proxy.id for proxy in first.items + rest.items] == ids
    assert rest.next_cursor is None


async def test_unknown_proxies_are_not_found(proxies: Proxies) -> None:
    for missing in (7, 0, -1, 2**70):
        for change in (proxies.enable, proxies.disable, proxies.remove, proxies.open):
            with pytest.raises(NotFound, match=f"no proxy {missing}"):
                await change(missing)


async def test_private_addresses_must_be_allowed_and_metadata_never_is(proxies: Proxies) -> None:
    for address in ("127.0.0.1:1", "http://0x7f.1:1", "http://[::1]:1", "http://localhost:1"):
        with pytest.raises(NotAllowed, match="--allow-private"):
            await proxies.add(ProxySpec.parse(address))
    for address in ("http://169.254.169.254", "http://metadata.google.internal"):
        with pytest.raises(NotAllowed):
            await proxies.add(ProxySpec.parse(address), allow_private=True)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://proxy.example",
        "http://",
        f"http://ann:{PASSWORD}/x@proxy.example:80",
        f"http://ann:1234#{PASSWORD}@proxy.example:80",
        f"http://ann:1234?{PASSWORD}@proxy.example:80",
        f"http://ann%00:{PASSWORD}@proxy.example",
        f"http://an%3An:{PASSWORD}@proxy.example",
        f"http://ann:{PASSWORD}%0d%0aX:@proxy.example",
        f"http://ann:{PASSWORD}\udcff@proxy.example",
        f"http://ann:{PASSWORD * 30}@proxy.example",
        f"http://ann:{PASSWORD}@proxy.example:99999",
        f"http://ann:{PASSWORD}@[proxy.example",
    ],
)
def test_a_bad_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_address(address)
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_good_address_may_end_in_a_slash_and_white_space() -> None:
    spec = parse_address(" socks5://ann:a%2Fb@proxy.example/ \n")
    assert (spec.address, spec.password) == ("socks5://proxy.example:1080", "a/b")


@pytest.mark.parametrize("key", [None, b64encode(bytes(32)).decode()])
async def test_without_the_right_key_only_passwords_are_lost(
    proxies: Proxies, pool: ProxyPool, database: Database, tmp_path: Path, key: str | None
) -> None:
    locked, free = await add(proxies, f"http://ann:{PASSWORD}@a.example", "http://b.example")
    await fail(pool, locked)
    strange = Vault(
        Settings(home=tmp_path / "elsewhere", secret_key=None if key is None else SecretStr(key))
    )
    others = Proxies(database, strange)
    with pytest.raises(SecretsUnavailable, match="FORAGER_SECRET_KEY"):
        await others.open(locked)
    await make_due(database, locked)
    (result,) = await ProxyProber(database, strange, OPTIONS).run_once()
    assert not result.ok
    await others.enable(locked)
    strangers = ProxyPool(database, strange, LOCAL)
    assert await picked_id(strangers, locked) == free
    with pytest.raises(SecretsUnavailable):
        await strangers.pick(HOST, [free])
    assert len((await others.page(limit=10)).items) == 2
    await others.remove(locked)


async def test_no_password_is_logged_shown_or_raised(
    proxies: Proxies,
    pool: ProxyPool,
    prober: ProxyProber,
    database: Database,
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logs("debug", "json")
    shown: list[object] = []
    async with HostileServer() as site, Client(OPTIONS) as client:
        for kind, scheme in ((HttpProxy, "http"), (Socks5Proxy, "socks5")):
            async with kind("ann", "another one") as proxy:
                at = f"127.0.0.1:{proxy.port}"
                (a,) = await add(proxies, f"{scheme}://ann:{PASSWORD}@{at}")
                for path in ("/ok", "/close"):
                    await crawl_once(pool, client, f"{site.url}{path}")
                await fail(pool, a)
                await make_due(database, a)
                shown += await prober.run_once()
                picked = await proxies.open(a)
                shown += [picked, picked.spec, vars(pool), vars(proxies)]
                with pytest.raises(RotateProxy) as caught:
                    await client.fetch(Request("https://shop.example/", proxy=picked.spec))
                shown += [caught.value, *traceback.format_exception(caught.value)]
    kept = (await proxies.page(limit=10)).items
    shown += [asdict(one) for one in kept]
    assert {one.state for one in kept} == {ProxyState.FAILING}
    said = "".join(map(repr, shown)) + "".join(capfd.readouterr())
    assert "proxy disabled" in said
    hidden = b64encode(f"ann:{PASSWORD}".encode()).decode()
    assert PASSWORD not in said
    assert hidden not in said
