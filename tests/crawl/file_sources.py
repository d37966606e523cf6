"""Sources made of files: crawled, and read by an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from crawl.crawling import Crawled, Crawls
from crawl.refreshing import SOURCE
from forager.documents.diff import diff_generations
from forager.mcp.transports import mcp_endpoint
from support.api_server import api_server

GUIDE = """\
# Water pump

{text}

See [home](../index.html).

## Screws

Use M8 screws of steel, four of them, and tighten them by hand.
"""
HOME = """\
<html><head><title>Manual</title></head><body><main><h1 id="home">Manual</h1>
<p>Everything about the pump, from its installation to its repair.
<a href="guide/pump.html">pump</a> <a href="/reference">reference</a></p></main></body></html>
"""
REFERENCE = """\
Reference
=========

See :doc:`/guide/pump`.

.. raw:: html

   <p>raw text</p>

.. include:: {secret}

.. frobnicate:: of an extension

   The content of an unknown directive stays.

.. py:function:: start(speed, *, direction="left")

   Starts the pump.
"""


def write_manual(root: Path, *, text: str = "The pump moves water uphill.") -> None:
    write(root, "index.html", HOME)
    write(root, "guide/pump.md", GUIDE.format(text=text))
    write(root, "reference.rst", REFERENCE.format(secret=root.parent / "secret.txt"))
    write(root.parent, "secret.txt", "swordfish")


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


async def crawl_files(crawls: Crawls, **options: Any) -> Crawled:
    return await crawls.run(source=SOURCE, **options)


async def changed_pages(crawls: Crawls) -> dict[str, list[str]]:
    """The names of the pages that the newest generation has changed."""
    diff = await diff_generations(crawls.database, SOURCE)
    return {
        name: sorted(page.url.rpartition("/")[2] for page in getattr(diff, name))
        for name in ("added", "removed", "changed")
    }


async def ask_agent(crawls: Crawls, query: str) -> str:
    """The answer that an agent gets over MCP."""
    async with api_server(crawls.settings, crawls.database, beside=mcp_endpoint) as address:
        transport = streamable_http_client(f"{address}/mcp")
        async with Client(transport) as client:
            result = await client.call_tool("search_docs", {"query": query, "source": SOURCE})
    return "\n".join(getattr(each, "text", "") for each in result.content)
