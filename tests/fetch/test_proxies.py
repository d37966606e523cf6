from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import traceback
from base64 import b64encode
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr

from forager.db.database import Database, SessionLimits
from forager.errors import (
    DatabaseUnavailable,
    InvalidInput,
    NotAllowed,
    NotFound,
    Retry,
    RotateProxy,
)
from forager.fetch.budgets.budget import Budgets
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.probe import ProbeResult, ProxyProber, probe
from forager.fetch.proxies.record import ProxyRecord, ProxySpec, ProxyState, Tally
from forager.fetch.proxies.service import (
    FAILURES_ALLOWED,
    Proxies,
    ProxyPool,
    parse_address,
    proxy_guard,
)
from forager.fetch.response import Request
from forager.fetch.sender import Sender
from forager.logs import configure_logs
from forager.secrets import SecretsUnavailable, Vault
from forager.settings import Settings
from servers.base import LoopbackServer
from servers.certificates import Authority
from servers.hostile import HostileServer
from servers.proxies import HttpProxy, Socks5Proxy
from support.waiting import lock_waited_for

LOCAL = GuardPolicy(allow_private=True)
OPTIONS = ClientOptions(user_agent="ForagerTest/1.0", guard=LOCAL)
PASSWORD = "tr0ub4dor&3"
HOST = "shop.example"


@pytest.fixture(autouse=True)
def no_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures count at once; one test is about the time."""
    monkeypatch.setattr("forager.fetch.proxies.service.QUIET_SECONDS", 0.0)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(Settings(home=tmp_path / "home"))


@pytest.fixture
def proxies(database: Database, vault: Vault) -> Proxies:
    return Proxies(database, vault)


@pytest.fixture
def pool(database: Database, vault: Vault) -> ProxyPool:
    return ProxyPool(database, vault, LOCAL)


@pytest.fixture
def prober(database: Database, vault: Vault) -> ProxyProber:
    return ProxyProber(database, vault, OPTIONS)


async def add(proxies: Proxies, *addresses: str) -> list[int]:
    return [
        (await proxies.add(ProxySpec.parse(address), allow_private=True)).id
        for address in addresses
    ]


async def record(proxies: Proxies, proxy_id: int) -> ProxyRecord:
    return (await proxies.page(limit=1, after=proxy_id - 1)).items[0]


async def picked_id(pool: ProxyPool, *exclude: int, host: str = HOST) -> int | None:
    picked = await pool.pick(host, exclude)
    return None if picked is None else picked.id


async def make_due(database: Database, proxy_id: int) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE proxies SET next_probe_at = now() WHERE id = %s", (proxy_id,)
        )


async def seconds_to_probe(database: Database, proxy_id: int) -> float:
    async with database.connection() as connection:
        cursor = await connection.execute(
            "SELECT extract(epoch FROM next_probe_at - now()) FROM proxies WHERE id = %s",
            (proxy_id,),
        )
        row = await cursor.fetchone()
    assert row is not None
    return float(row[0])


# --- kept ------------------------------------------------------------------------------------


async def test_a_password_is_stored_encrypted_and_comes_back(
    proxies: Proxies, database: Database
) -> None:
    spec = ProxySpec.parse(f"socks5://ann:{PASSWORD}@proxy.example:1080")
    added = await proxies.add(spec)
    assert added.is_new
    assert (await proxies.open(added.id)).spec == spec
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT proxies::text, proxy_password FROM proxies")
        row = await cursor.fetchone()
    assert row is not None
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


async def test_what_does_not_exist_is_said_not_to(proxies: Proxies) -> None:
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


# --- picked ----------------------------------------------------------------------------------


async def test_the_one_that_rested_longest_comes_first(proxies: Proxies, pool: ProxyPool) -> None:
    a, b, c = await add(proxies, "http://a.example", "http://b.example", "http://c.example")
    assert [await picked_id(pool) for _ in range(4)] == [a, b, c, a]
    assert await picked_id(pool, b) == c
    await proxies.disable(a)
    assert [await picked_id(pool) for _ in range(3)] == [b, c, b]
    assert await picked_id(pool, b, c) is None
    await proxies.enable(a)
    assert await picked_id(pool) == a


async def test_a_proxy_that_must_wait_for_this_host_comes_later(
    proxies: Proxies, pool: ProxyPool, database: Database
) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    async with database.connection() as connection:
        await connection.execute(
            """
            WITH shop AS (
                INSERT INTO domains (domain_name, base_url)
                VALUES ('shop.example', 'https://shop.example/') RETURNING id
            )
            INSERT INTO proxy_slots SELECT id, %s, now() + interval '1 hour' FROM shop
            """,
            (a,),
        )
    assert await picked_id(pool, host="www.shop.example") == b
    assert await picked_id(pool, host="www.shop.example") == b
    assert await picked_id(pool, host="other.example") == a


async def test_a_proxy_that_is_being_picked_is_left_to_others_or_waited_for(
    proxies: Proxies, pool: ProxyPool, database: Database
) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    async with database.transaction() as connection:
        await connection.execute("SELECT FROM proxies WHERE id = %s FOR NO KEY UPDATE", (a,))
        assert await picked_id(pool) == b
        assert await picked_id(pool) == b
        waiting = asyncio.create_task(picked_id(pool, b))
        await lock_waited_for(database)
    assert await waiting == a


async def test_two_processes_share_the_proxies_in_order(
    proxies: Proxies, database_url: str, tmp_path: Path
) -> None:
    ids = [
        (await proxies.add(ProxySpec.parse(f"http://p{number}.example"))).id for number in range(60)
    ]
    pickers = [
        subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("proxy_picker.py")),
                database_url,
                str(tmp_path / "home"),
                str(len(ids) // 2),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for picker in pickers:
        assert picker.stdout is not None
        assert picker.stdout.readline() == "ready\n"
    for picker in pickers:
        assert picker.stdin is not None
        picker.stdin.write("go\n")
        picker.stdin.flush()
    picked = [
        [int(line) for line in picker.communicate(timeout=60)[0].split()] for picker in pickers
    ]
    assert sorted(picked[0] + picked[1]) == ids
    assert picked == [sorted(picked[0]), sorted(picked[1])]


async def test_a_client_that_may_not_use_private_proxies_gets_none(
    proxies: Proxies, database: Database, vault: Vault
) -> None:
    assert not (await proxy_guard(database)).allow_private
    public = (await proxies.add(ProxySpec.parse("http://proxy.example"))).id
    assert not (await proxy_guard(database)).allow_private
    (private,) = await add(proxies, "http://10.0.0.1")
    assert (await proxy_guard(database)).allow_private
    assert await picked_id(ProxyPool(database, vault, GuardPolicy()), public) is None
    assert await picked_id(ProxyPool(database, vault, LOCAL), public) == private


# --- counted ---------------------------------------------------------------------------------


async def test_counts_are_written_together(proxies: Proxies, pool: ProxyPool) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    pool.succeeded(a, 100)
    pool.succeeded(a, 200)
    pool.failed(a, "refused")
    pool.failed(b, "a NUL \x00 and a surrogate \ud800 " + "x" * 10_000)
    assert (await record(proxies, a)).success_count == 0
    assert await pool.run_once() == []
    one, two = (await proxies.page(limit=2)).items
    assert (one.success_count, one.failure_count, one.consecutive_failures) == (2, 1, 1)
    assert (one.avg_response_time_ms, one.last_failure_reason) == (150, "refused")
    assert None not in (one.last_success_at, one.last_failure_at)
    assert (two.success_count, two.avg_response_time_ms, two.last_success_at) == (0, None, None)
    pool.succeeded(a, 300)
    await pool.run_once()
    one = await record(proxies, a)
    assert (one.avg_response_time_ms, one.consecutive_failures) == (200, 0)


async def test_an_absurd_time_spoils_nothing(proxies: Proxies, pool: ProxyPool) -> None:
    (a,) = await add(proxies, "http://a.example")
    pool.succeeded(a, 1e300)
    pool.succeeded(a, -5)
    await pool.run_once()
    assert (await record(proxies, a)).success_count == 2


async def test_the_rest_is_written_when_the_pool_closes(proxies: Proxies, pool: ProxyPool) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with pool:
        pool.succeeded(a, 5)
    assert (await record(proxies, a)).success_count == 1


async def test_counts_survive_a_database_that_cannot_take_them(
    proxies: Proxies, database: Database, database_url: str, vault: Vault
) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with Database(database_url, limits=SessionLimits(lock_ms=50)) as hurried:
        pool = ProxyPool(hurried, vault, LOCAL)
        pool.failed(a, "first")
        async with database.transaction() as connection:
            await connection.execute("LOCK TABLE proxies IN EXCLUSIVE MODE")
            with pytest.raises(DatabaseUnavailable):
                await pool.run_once()
        pool.failed(a, "second")
        await pool.run_once()
    kept = await record(proxies, a)
    assert (kept.failure_count, kept.consecutive_failures) == (2, 2)
    assert kept.last_failure_reason == "second"


def test_tallies_add_up_in_the_order_things_happened() -> None:
    earlier, later = Tally(), Tally()
    earlier.succeed(10)
    earlier.fail("one")
    later.fail("two")
    assert earlier.followed_by(later) == Tally(1, 2, 2, 10, "two")
    later.succeed(20)
    assert earlier.followed_by(later) == Tally(2, 2, 0, 30, "two")


async def test_counts_of_a_removed_proxy_are_dropped(proxies: Proxies, pool: ProxyPool) -> None:
    a, b = await add(proxies, "http://a.example", "http://b.example")
    await proxies.remove(a)
    for proxy_id in (a, b):
        pool.failed(proxy_id, "refused")
    await pool.run_once()
    assert (await record(proxies, b)).failure_count == 1


# --- turned off, probed, turned on again -----------------------------------------------------


class MortalProxy(Socks5Proxy):
    """Closes every connection while it is dead."""

    dead = False

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.dead:
            await super().handle(reader, writer)


async def crawl_once(pool: ProxyPool, client: Client, url: str) -> int | None:
    """What a runner does with one URL; the id of the proxy it went through."""
    proxy = await pool.pick("127.0.0.1")
    if proxy is None:
        return None
    began = time.perf_counter()
    try:
        await client.fetch(Request(url, proxy=proxy.spec))
    except RotateProxy as error:
        pool.failed(proxy.id, error.message)
    else:
        pool.succeeded(proxy.id, (time.perf_counter() - began) * 1000)
    return proxy.id


class SilentProxy(HttpProxy):
    """Records every request, and closes the connection."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")


async def test_a_host_that_hangs_up_is_identified_by_another_proxy(
    proxies: Proxies, pool: ProxyPool, database: Database
) -> None:
    async with (
        HostileServer() as site,
        SilentProxy() as silent,
        HttpProxy() as sound,
        Client(OPTIONS) as client,
        Budgets(database, holder=uuid4(), delay=0.0, concurrency=5) as budgets,
    ):
        sender = Sender(client, budgets, pool)
        bad, good = await add(
            proxies, f"http://127.0.0.1:{silent.port}", f"http://127.0.0.1:{sound.port}"
        )
        for _ in range(2):
            assert (await sender.send(Request(f"{site.url}/ok"), None)).status == 200
        # a server that closes the connection does so for every proxy: none is at fault
        with pytest.raises(Retry):
            await sender.send(Request(f"{site.url}/reset"), None)
    await pool.run_once()
    kept = {one.id: one for one in (await proxies.page(limit=10)).items}
    assert kept[bad].failure_count >= 1
    assert (kept[good].failure_count, kept[good].success_count) == (0, 2)


async def test_a_dying_proxy_is_turned_off_and_comes_back(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    async with (
        HostileServer() as site,
        MortalProxy("ann", PASSWORD) as mortal,
        Client(OPTIONS) as client,
    ):
        # a kept-alive connection would outlive the proxy's death
        url = f"{site.url}/close"
        (a,) = await add(proxies, f"socks5://ann:{PASSWORD}@127.0.0.1:{mortal.port}")
        assert await crawl_once(pool, client, f"{site.url}/ok") == a
        await client.close()
        mortal.dead = True
        for _ in range(FAILURES_ALLOWED):
            assert await crawl_once(pool, client, url) == a
        assert await pool.run_once() == []
        assert (await record(proxies, a)).state is ProxyState.ACTIVE

        assert await crawl_once(pool, client, url) == a
        (off,) = await pool.run_once()
        assert (off.id, off.state, off.consecutive_failures) == (a, ProxyState.FAILING, 11)
        assert (off.disabled_reason or "").startswith("11 failures in a row, the last: the proxy")
        assert await crawl_once(pool, client, url) is None

        assert await prober.run_once() == []  # not due yet
        await make_due(database, a)
        (result,) = await prober.run_once()
        assert not result.ok
        assert (await record(proxies, a)).state is ProxyState.FAILING
        assert await prober.run_once() == []

        mortal.dead = False
        await make_due(database, a)
        (result,) = await prober.run_once()
        assert result.ok
        back = await record(proxies, a)
        assert (back.state, back.disabled_reason, back.consecutive_failures) == (
            ProxyState.ACTIVE,
            None,
            0,
        )
        assert await crawl_once(pool, client, f"{site.url}/ok") == a
        assert mortal.targets[-1] == f"127.0.0.1:{site.port}"


async def test_the_background_writer_turns_a_dead_proxy_off_at_once(
    proxies: Proxies, pool: ProxyPool
) -> None:
    (a,) = await add(proxies, "http://a.example")
    async with pool:
        for _ in range(FAILURES_ALLOWED + 1):
            pool.failed(a, "refused")
        while await picked_id(pool) is not None:
            await asyncio.sleep(0.01)
    assert (await record(proxies, a)).failure_count == FAILURES_ALLOWED + 1


async def test_a_success_in_between_starts_the_count_again(
    proxies: Proxies, pool: ProxyPool
) -> None:
    (a,) = await add(proxies, "http://a.example")
    for _ in range(FAILURES_ALLOWED):
        pool.failed(a, "refused")
    await pool.run_once()
    pool.succeeded(a, 1)
    for _ in range(FAILURES_ALLOWED):
        pool.failed(a, "refused")
    assert await pool.run_once() == []
    pool.failed(a, "refused")
    assert [off.id for off in await pool.run_once()] == [a]


async def test_each_probe_in_vain_waits_longer_until_a_request_succeeds(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    async with MortalProxy() as mortal:
        mortal.dead = True
        (a,) = await add(proxies, f"socks5://127.0.0.1:{mortal.port}")
        await _fail(pool, a)
        waits = [await seconds_to_probe(database, a)]
        for _ in range(9):
            await make_due(database, a)
            await prober.run_once()
            waits.append(await seconds_to_probe(database, a))
        assert [round(wait / 30) for wait in waits] == [1, 1, 2, 4, 8, 16, 32, 64, 120, 120]
        mortal.dead = False
        await make_due(database, a)
        await prober.run_once()
        # the door opens, but nothing goes through: it must not flap
        await _fail(pool, a)
        assert round(await seconds_to_probe(database, a) / 30) == 120
        pool.succeeded(a, 1)
        await proxies.recovered(a)
        await pool.run_once()
        await _fail(pool, a)
        assert round(await seconds_to_probe(database, a) / 30) == 1


async def _fail(pool: ProxyPool, proxy_id: int) -> None:
    for _ in range(FAILURES_ALLOWED + 1):
        pool.failed(proxy_id, "refused")
    assert [off.id for off in await pool.run_once()] == [proxy_id]


async def test_many_failures_at_one_moment_do_not_turn_a_proxy_off(
    proxies: Proxies, pool: ProxyPool, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.fetch.proxies.service.QUIET_SECONDS", 30.0)
    (a,) = await add(proxies, "http://a.example")
    pool.succeeded(a, 1)
    for _ in range(FAILURES_ALLOWED + 1):
        pool.failed(a, "refused")
    assert await pool.run_once() == []
    async with database.connection() as connection:
        await connection.execute("UPDATE proxies SET last_success_at = now() - interval '1 min'")
    await _fail(pool, a)


async def test_a_slow_proxy_gets_fewer_requests(proxies: Proxies, pool: ProxyPool) -> None:
    slow, fast = await add(proxies, "http://slow.example", "http://fast.example")
    pool.succeeded(slow, 60_000)
    pool.succeeded(fast, 1)
    await pool.run_once()
    assert [await picked_id(pool) for _ in range(4)] == [slow, fast, fast, fast]


async def test_two_probers_do_not_probe_the_same_proxy(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database, vault: Vault
) -> None:
    async with Socks5Proxy() as well:
        (a,) = await add(proxies, f"socks5://127.0.0.1:{well.port}")
        await _fail(pool, a)
        await make_due(database, a)
        other = ProxyProber(database, vault, OPTIONS)
        results = await asyncio.gather(prober.run_once(), other.run_once())
    assert [result.proxy_id for some in results for result in some] == [a]


async def test_what_a_person_turned_off_stays_off(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber, database: Database
) -> None:
    (a,) = await add(proxies, "socks5://127.0.0.1:9")
    await _fail(pool, a)
    off = await proxies.disable(a, "too expensive")
    assert (off.state, off.disabled_reason) == (ProxyState.DISABLED, "too expensive")
    assert not await proxies.recovered(a)
    assert await prober.run_once() == []
    pool.failed(a, "still in flight")
    assert await pool.run_once() == []
    assert (await record(proxies, a)).disabled_reason == "too expensive"


async def test_a_new_password_brings_the_probe_forward(
    proxies: Proxies, pool: ProxyPool, prober: ProxyProber
) -> None:
    async with HttpProxy("ann", PASSWORD) as server:
        (a,) = await add(proxies, f"http://ann:wrong@127.0.0.1:{server.port}")
        await _fail(pool, a)
        assert await prober.run_once() == []
        await add(proxies, f"http://ann:{PASSWORD}@127.0.0.1:{server.port}")
        assert [result.ok for result in await prober.run_once()] == [True]


# --- probed ----------------------------------------------------------------------------------


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


# --- secrets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, b64encode(bytes(32)).decode()])
async def test_without_the_right_key_only_passwords_are_lost(
    proxies: Proxies, pool: ProxyPool, database: Database, tmp_path: Path, key: str | None
) -> None:
    locked, free = await add(proxies, f"http://ann:{PASSWORD}@a.example", "http://b.example")
    await _fail(pool, locked)
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
                await _fail(pool, a)
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
