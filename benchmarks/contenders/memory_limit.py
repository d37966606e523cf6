"""The limit: fetch, parse, links, in memory, nothing stored, in one process. Usage: URL FOLDER."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

import wreq
from ada_url import join_url
from protego import Protego
from selectolax.lexbor import LexborHTMLParser

URL = sys.argv[1]
HOST = urlsplit(URL).netloc


async def robots(client: wreq.Client) -> Protego:
    response = await client.get(f"http://{HOST}/robots.txt")
    return Protego.parse(await response.text() if response.status.as_int() == 200 else "")


async def main() -> None:
    client = wreq.Client()
    rules = await robots(client)
    seen = {URL}
    queue: asyncio.Queue[str] = asyncio.Queue()
    queue.put_nowait(URL)
    pages = 0

    async def work() -> None:
        nonlocal pages
        while True:
            url = await queue.get()
            if rules.can_fetch(url, "limit"):
                response = await client.get(url)
                body = await response.bytes()
                kind = bytes(response.headers.get("content-type") or b"")
                if response.status.as_int() == 200 and b"html" in kind:
                    pages += 1
                    for link in links(url, body):
                        if link not in seen:
                            seen.add(link)
                            queue.put_nowait(link)
            queue.task_done()

    started = time.perf_counter()
    workers = [asyncio.create_task(work()) for _ in range(64)]
    await queue.join()
    print(json.dumps({"pages": pages, "seconds": time.perf_counter() - started}))
    for worker in workers:
        worker.cancel()


def links(base: str, body: bytes) -> list[str]:
    found = []
    for node in LexborHTMLParser(bytes(body)).css("a[href]"):
        try:
            url = join_url(base, node.attributes["href"] or "").partition("#")[0]
        except ValueError:
            continue
        if urlsplit(url).netloc == HOST:
            found.append(url)
    return found


asyncio.run(main())
