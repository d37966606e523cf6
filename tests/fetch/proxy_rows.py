"""Proxies of tests: add them, pick one, and look at their rows."""

from __future__ import annotations

import time

from forager.db.database import Database
from forager.errors import RotateProxy
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.proxy import ProxyRecord, ProxySpec
from forager.fetch.proxies.service import FAILURES_ALLOWED, Proxies, ProxyPool
from forager.fetch.response import Request
from support.sql import execute

LOCAL = GuardPolicy(allow_private=True)
OPTIONS = ClientOptions(user_agent="ForagerTest/1.0", guard=LOCAL)
PASSWORD = "tr0ub4dor&3"
HOST = "shop.example"


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
    await execute(database, "UPDATE proxies SET next_probe_at = now() WHERE id = %s", proxy_id)


async def crawl_once(pool: ProxyPool, client: Client, url: str) -> int | None:
    """Fetch a URL as a runner does; return the id of the proxy that was used."""
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


async def fail(pool: ProxyPool, proxy_id: int) -> None:
    """Report one failure more than is allowed, which turns the proxy off."""
    for _ in range(FAILURES_ALLOWED + 1):
        pool.failed(proxy_id, "refused")
    assert [off.id for off in await pool.run_once()] == [proxy_id]
