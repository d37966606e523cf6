"""A search answers with text: whole sections within the budget, none twice."""

from __future__ import annotations

from forager.db.database import Database
from forager.mcp.text import BYTES_PER_TOKEN
from mcp_server.conftest import Connect, text_of
from search_corpus import Corpus

SHARED = "Pools are closed with the application."


async def test_a_search_returns_whole_sections_once(connect: Connect, database: Database) -> None:
    pool = "\n\n".join(f"A pool keeps {number} connections." for number in range(20))
    await Corpus(database).publish(
        "pools.example",
        {"/a": [("Connection pool", pool), ("End", SHARED)], "/b": [("Pool end", SHARED)]},
    )
    async with connect() as client:
        found = text_of(await client.call_tool("search_docs", {"query": "pool"}))
    assert pool in found
    assert found.count(SHARED) <= 1
    assert "https://pools.example/a#part-0" in found
    assert "days ago)" in found


async def test_a_long_section_is_cut_around_the_match(connect: Connect, database: Database) -> None:
    text = [f"Paragraph {number} about pools." for number in range(2_000)]
    text[1_000] = "The zebra setting is here."
    await Corpus(database).publish("long.example", {"/a": [("Pools", "\n\n".join(text))]})
    arguments = {"query": "zebra", "max_tokens": 1_000}
    async with connect() as client:
        found = text_of(await client.call_tool("search_docs", arguments))
    assert text[1_000] in found
    assert text[0] not in found
    assert len(found) <= 1_000 * BYTES_PER_TOKEN


async def test_a_source_is_found_despite_typos(connect: Connect, database: Database) -> None:
    corpus = Corpus(database)
    for source in ("sqlalchemy@2.0", "docs.python.org"):
        await corpus.publish(source, {"/": [("Manual", f"About {source}.")]})
    async with connect() as client:
        found = text_of(await client.call_tool("list_sources", {"name": "sqlalchmey"}))
        assert "sqlalchemy@2.0: Manual: About sqlalchemy@2.0." in found
        assert "docs.python.org" not in found
        none = text_of(await client.call_tool("list_sources", {"name": "zzzz"}))
    assert "No source has such a name" in none


async def test_links_to_the_same_host_are_relative(connect: Connect, database: Database) -> None:
    text = "See [more](https://links.example/b#x) and [other](https://other.example/)."
    await Corpus(database).publish("links.example", {"/a": [("Zebras", text)]})
    url = "https://links.example/a"
    async with connect() as client:
        found = text_of(await client.call_tool("search_docs", {"query": "zebras"}))
        read = text_of(await client.call_tool("read_page", {"url": url}))
        absolute = {"url": f"{url}#part-0", "absolute_links": True}
        section = text_of(await client.call_tool("read_section", absolute))
    written = "[more](b#x) and [other](https://other.example/)"
    assert written in found
    assert written in read
    assert text in section
