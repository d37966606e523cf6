"""A shop with every requested product: `python -m benchmarks.dispatch_shop`, prints its port."""

from __future__ import annotations

import asyncio

import uvloop
from aiohttp import web

PAGE = """<!doctype html><html lang="en"><head><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "Product {name}", "sku": "{name}", "offers": {{"@type": "Offer", "price": "10.00",
"priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}}}</script></head>
<body><h1>Product {name}</h1></body></html>"""


async def product(request: web.Request) -> web.Response:
    return web.Response(text=PAGE.format(name=request.match_info["name"]), content_type="text/html")


async def main() -> None:
    shop = web.Application()
    shop.router.add_get("/p/{name}", product)
    runner = web.AppRunner(shop, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
