"""Many tasks of many domains through five proxies, two of which die on the way."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import pytest

from forager.extract.keys import url_hash
from forager.fetch.budgets.exchange import PAIR_DELAY
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.secrets import Vault
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.scheduler import Scheduler
from servers.base import LoopbackServer
from servers.proxies import Reader, Writer
from support.waiting import eventually
from tasks.working import Tasks, process

# 2,000 in CI, where their budgets alone take 20 seconds
TASKS = int(os.environ.get("FORAGER_TEST_MANY_TASKS", "600"))
# at least 30 tasks each: the shortest time of 20 requests is compared with the budget
DOMAINS = max(20, TASKS // 200)
DELAY = 0.2
# every n-th domain limits each proxy separately, and has no limit in total
PER_PROXY = 5
# what timers and sockets blur of the time between two requests
BLUR = 0.5

PAGE = """<!doctype html><html><head><title>Thing {n}</title><script type="application/ld+json">
{{"@type": "Product", "name": "Thing {n}", "sku": "{n}", "offers": {{"@type": "Offer",
"price": "{price}", "priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}}}
</script></head><body><h1>Thing {n}</h1></body></html>"""


@dataclass
class Shops(LoopbackServer):
    """All shops behind all proxies: a proxy speaks to the far end itself, and it is here.

    `name`d proxies answer absolute-form requests at once; each request is noted with its time.
    """

    log: dict[str, list[float]]
    seen: list[float] = field(default_factory=list)
    dead: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    async def handle(self, reader: Reader, writer: Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if self.dead:
                writer.transport.abort()
                return
            target = head.split(b" ", 2)[1].decode()
            host, _, path = target.removeprefix("http://").partition("/")
            now = time.monotonic()
            self.log[host].append(now)
            self.seen.append(now)
            writer.write(_answer(path))
            await writer.drain()


def _answer(path: str) -> bytes:
    if path == "robots.txt":
        kind, body = "text/plain", b"User-agent: *\nAllow: /\n"
    else:
        number = int(path.removeprefix("p/"))
        kind, body = "text/html", PAGE.format(n=number, price=f"{number % 90 + 10}.00").encode()
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


@contextmanager
def five_proxies() -> Iterator[list[Shops]]:
    """On a separate loop, so that the test does not slow them down."""
    proxies = [Shops(defaultdict(list)) for _ in range(5)]
    ready, ended = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with AsyncExitStack() as stack:
            for proxy in proxies:
                await stack.enter_async_context(proxy)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="proxies")
    thread.start()
    ready.wait()
    try:
        yield proxies
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()


async def track(tasks: Tasks) -> None:
    urls = [f"http://shop{n % DOMAINS}.example/p/{n}" for n in range(TASKS)]
    await tasks.sql(
        """
        INSERT INTO domains
            (domain_name, base_url, crawl_delay_seconds, use_proxies, per_proxy_only)
        SELECT 'shop' || n || '.example', 'http://shop' || n || '.example/', %s, true,
               n %% %s = 0
          FROM generate_series(0, %s) AS n
        """,
        DELAY,
        PER_PROXY,
        DOMAINS - 1,
    )
    await tasks.sql(
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash)
        SELECT d.id, t.url, t.hash
          FROM unnest(%s::text[], %s::bytea[]) AS t (url, hash)
          JOIN domains d ON d.domain_name = split_part(t.url, '/', 3)
        """,
        urls,
        [url_hash(url) for url in urls],
    )


@asynccontextmanager
async def scheduling(tasks: Tasks) -> AsyncIterator[None]:
    async with running([Scheduler(tasks.database, tasks.settings).service()]):
        yield


def fastest(times: list[float], count: int) -> float:
    """The shortest time in which this many requests arrived."""
    return min(
        (times[i + count - 1] - times[i] for i in range(len(times) - count + 1)), default=1e9
    )


@pytest.mark.timeout(600)
async def test_many_tasks_through_dying_proxies(tasks: Tasks) -> None:
    tasks.settings = Settings(**(tasks.settings.model_dump() | {"task_concurrency": 128}))
    await track(tasks)
    with five_proxies() as proxies:
        known = Proxies(tasks.database, Vault(tasks.settings))
        for proxy in proxies:
            spec = ProxySpec.parse(f"http://127.0.0.1:{proxy.port}")
            await known.add(spec, allow_private=True)
        async with scheduling(tasks), process(tasks):
            for dying, after in ((proxies[0], TASKS // 5), (proxies[1], TASKS // 2)):
                await completed(tasks, after)
                dying.dead = True
            await completed(tasks, TASKS)
    assert await tasks.sql("SELECT count(*) FROM products") == [(TASKS,)]
    assert await tasks.sql("SELECT count(*) FROM price_history") == [(TASKS,)]
    assert await tasks.sql("SELECT count(*) FROM dead_letters") == [(0,)]
    rows = await tasks.sql(
        """
        SELECT max(n) FROM (SELECT count(*) AS n FROM task_attempts
         WHERE stage = 'parse' AND outcome = 'ok' GROUP BY task_id) AS done
        """
    )
    assert rows == [(1,)]
    check_budgets(proxies)


async def completed(tasks: Tasks, count: int) -> None:
    async def look() -> bool:
        rows = await tasks.sql("SELECT count(*) FROM crawl_tasks WHERE status = 'completed'")
        return int(rows[0][0]) >= count

    await eventually(look, 400)


def check_budgets(proxies: list[Shops]) -> None:
    """Of each host in total, and of each host through each proxy."""
    hosts = {host for proxy in proxies for host in proxy.log}
    assert len(hosts) == DOMAINS
    for host in hosts:
        if int(host.removeprefix("shop").removesuffix(".example")) % PER_PROXY:
            together = sorted(at for proxy in proxies for at in proxy.log[host])
            assert fastest(together, 20) >= 19 * DELAY * BLUR
        for proxy in proxies:
            assert fastest(proxy.log[host], 5) >= 4 * PAIR_DELAY * BLUR
