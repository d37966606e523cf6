"""Which proxy is picked for a request."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from fetch.proxy_rows import LOCAL, add, picked_id
from forager.db.database import Database
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies, ProxyPool, proxy_guard
from forager.secrets import Vault
from support.sql import execute
from support.waiting import lock_waited_for


async def test_the_least_recently_used_proxy_is_picked_first(
    proxies: Proxies, pool: ProxyPool
) -> None:
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
    await execute(
        database,
        """
            WITH shop AS (
                INSERT INTO domains (domain_name, base_url)
                VALUES ('shop.example', 'https://shop.example/') RETURNING id
            )
            INSERT INTO proxy_slots SELECT id, %s, now() + interval '1 hour' FROM shop
            """,
        a,
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
