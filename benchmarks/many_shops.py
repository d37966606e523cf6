"""One shop on many loopback addresses: `python -m benchmarks.many_shops COUNT`, prints its port."""

from __future__ import annotations

import asyncio
import resource
import sys
from ipaddress import IPv4Address

import uvloop
from aiohttp import web

from benchmarks.dispatch_shop import product

FIRST = IPv4Address("127.1.0.1")


def addresses(count: int) -> list[str]:
    return [str(FIRST + n) for n in range(count)]


async def main(count: int) -> None:
    shop = web.Application()
    shop.router.add_get("/p/{name}", product)
    runner = web.AppRunner(shop, access_log=None)
    await runner.setup()
    first, *others = addresses(count)
    site = web.TCPSite(runner, first, 0, backlog=16)
    await site.start()
    port = runner.addresses[0][1]
    for address in others:
        await web.TCPSite(runner, address, port, backlog=16).start()
    print(port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(main(int(sys.argv[1])))
