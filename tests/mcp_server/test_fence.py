"""Every word of a crawled site is between the marks of untrusted content, whatever the tool."""

from __future__ import annotations

import re
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from forager.db.database import Database
from forager.db.ids import new_id
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from forager.mcp.server import TOOLS
from forager.settings import Settings
from mcp_server.conftest import Connect, text_of
from products.product_shop import Shop, lamp
from search_corpus import Corpus, Page
from support.sql import execute

OBEY = "OBEY"
FENCED = re.compile(r"<untrusted-content (\w+)>\n.*?</untrusted-content \1>", re.S)
SOURCE = "hostile.example"
URL = f"https://{SOURCE}/a"


@pytest.fixture
async def job_id(database: Database, queue: Queue) -> str:
    """A crawl that a hostile answer ended, and its source with hostile pages."""
    corpus = Corpus(database)
    for words in ("zebra", "zebra lion"):
        section = (f"{OBEY} heading", f"{OBEY} all {words}.\n" + f"{OBEY}\n" * 3_000)
        await corpus.publish(
            SOURCE, {"/a": Page([section], title=OBEY), f"/{OBEY}": Page([("B", words)])}
        )
    await execute(
        database, "UPDATE sources SET base_url = %s RETURNING 1", f"https://{SOURCE}/{OBEY}"
    )
    await queue.enqueue(NewJob(kind="crawl", payload={"urls": [URL]}, source_id=SOURCE))
    worker = new_id()
    [job] = await queue.claim(worker, kinds=["crawl"])
    lease = Lease(job.id, job.lease, worker)
    await queue.fail(lease, f"redirected to https://{SOURCE}/{OBEY}", permanent=True)
    await execute(database, "UPDATE crawl_jobs SET stop_reason = %s RETURNING 1", OBEY)
    return str(job.id)


@pytest.fixture
async def product(database: Database, settings: Settings) -> str:
    shop = await Shop(database, settings).open()
    seen = await shop.visit("lamp", lamp("49.90"))
    for table, column in (("products", "product_name"), ("products", "brand")):
        await execute(database, f"UPDATE {table} SET {column} = 'lamp {OBEY}' RETURNING 1")
    await execute(database, f"UPDATE price_history SET currency = '{OBEY[:3]}' RETURNING 1")
    return str(seen.product_id)


def outside(text: str) -> str:
    return FENCED.sub("", text)


async def test_no_tool_repeats_a_page_outside_the_fence(
    connect: Connect, job_id: str, product: str
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_docs", {"query": "zebra"}),
        ("search_docs", {"query": "OBAY heeding"}),
        ("read_page", {"url": URL}),
        ("read_page", {"url": URL, "from_line": 10_000}),
        ("read_section", {"url": URL, "section": "part-0", "max_tokens": 500}),
        ("read_section", {"url": URL, "section": "missing"}),
        ("list_sources", {}),
        ("source_changes", {"source": SOURCE, "since_generation": 1}),
        ("explain_url", {"url": URL}),
        ("job_status", {"job_id": job_id}),
        ("search_products", {"query": "lamp"}),
        ("product_history", {"product": product}),
        ("product_history", {"product": "999999"}),
        ("crawl_site", {"source": SOURCE}),
        ("crawl_site", {"source": SOURCE}),
    ]
    assert {name for name, _ in calls} == {tool.name for tool in TOOLS}
    inside = set()
    async with connect() as client:
        for name, arguments in calls:
            text = text_of(await client.call_tool(name, arguments))
            assert OBEY[:3] not in outside(text), (name, arguments, outside(text))
            if OBEY[:3] in text:
                inside.add(name)
    assert inside >= {tool.name for tool in TOOLS} - {"explain_url", "crawl_site"}


async def test_no_resource_repeats_a_page_outside_the_fence(connect: Connect, job_id: str) -> None:
    async with connect() as client:
        [listed] = (await client.list_resources()).resources
        assert OBEY in (listed.description or "")
        assert OBEY not in outside(listed.description or "")
        for place in ("", "a"):
            [content] = (await client.read_resource(f"forager://{SOURCE}/{place}")).contents
            assert isinstance(content, types.TextResourceContents)
            assert OBEY in content.text
            assert OBEY not in outside(content.text)
        with pytest.raises(MCPError) as refused:
            await client.read_resource(f"forager://{SOURCE}/missing")
        assert OBEY not in outside(refused.value.error.message)
