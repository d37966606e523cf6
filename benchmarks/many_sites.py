"""Many small sites on loopback addresses: `python -m benchmarks.many_sites SITES PAGES`.

Prints its port. The home page of each site links to all its pages.
"""

from __future__ import annotations

import asyncio
import random
import resource
import sys

import uvloop
from aiohttp import web

from benchmarks.generated import WORDS
from benchmarks.many_shops import addresses

PARAGRAPHS = 12


def document(site: str, number: int, pages: int) -> str:
    chance = random.Random(f"{site}/{number}")
    text = "".join(f"<p>{' '.join(chance.choices(WORDS, k=60))}.</p>" for _ in range(PARAGRAPHS))
    numbers = range(1, pages) if number == 0 else [0, *chance.choices(range(1, pages), k=5)]
    links = "".join(f'<li><a href="/{n or ""}">Page {n}</a>' for n in numbers)
    title = f"Page {number} of {site}"
    return f"<title>{title}</title><main><h1>{title}</h1>{text}<ul>{links}</ul></main>"


async def main(sites: int, pages: int) -> None:
    async def page(request: web.Request) -> web.Response:
        number = int(request.match_info["number"] or 0)
        if number >= pages:
            raise web.HTTPNotFound
        site = request.host.partition(":")[0]
        return web.Response(text=document(site, number, pages), content_type="text/html")

    application = web.Application()
    application.router.add_get(r"/{number:\d*}", page)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    first, *others = addresses(sites)
    listener = web.TCPSite(runner, first, 0, backlog=16)
    await listener.start()
    port = runner.addresses[0][1]
    for address in others:
        await web.TCPSite(runner, address, port, backlog=16).start()
    print(port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
