"""Invalid arguments: every tool answers or rejects them, and none breaks."""

from __future__ import annotations

import random
from typing import Any

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from forager.access.caller import LOCAL
from forager.api.services import Services
from forager.db.database import Database
from forager.mcp.call import Host
from forager.mcp.server import create_server
from forager.mcp.text import clean
from forager.settings import Settings
from mcp_server.conftest import text_of
from search_corpus import Corpus

JUNK: list[Any] = [
    None, True, 0, -1, 1, 10**30, 1.5, float(10**300), "", " ", "0", "\0", "\ud800", "é\u202e",
    "a" * 20_000, "https://manual.example/locks", "https://[::1", "//", "#", "javascript:1",
    "manual.example", "manual.example@", "%", "'; DROP TABLE sources; --", '"', "-", "-a", "or",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00",
    "00000000-0000-0000-0000-000000000000", [], ["*"], ["("], [[]], {}, {"a": 1}, "[1]", "{}",
]  # fmt: skip
CALLS_PER_TOOL = 40


async def test_no_arguments_break_a_tool(
    database: Database, settings: Settings, manual: Corpus
) -> None:
    services = Services(database, settings)
    server = create_server(Host(services, lambda _: LOCAL))
    chance = random.Random(7)
    outcomes: set[str] = set()
    codes: set[int] = set()
    async with Client(server) as client:
        for tool in (await client.list_tools()).tools:
            names = list(tool.input_schema["properties"])
            required = tool.input_schema.get("required", [])
            for _ in range(CALLS_PER_TOOL):
                given = {*required, *chance.sample(names, chance.randint(0, 2))}
                arguments = {name: chance.choice(JUNK) for name in given}
                if arguments.get("wait_seconds"):
                    arguments["wait_seconds"] = 0
                try:
                    result = await client.call_tool(tool.name, arguments)
                except MCPError as error:
                    codes.add(error.code)
                else:
                    text = text_of(result)
                    assert text == clean(text)
                    assert "Traceback" not in text
                    outcomes.add("error" if result.is_error else "answer")
    assert {"error", "answer"} <= outcomes
    assert codes <= {types.INVALID_PARAMS}


async def test_a_server_to_read_offers_nothing_that_writes(
    database: Database, settings: Settings
) -> None:
    host = Host(Services(database, settings), lambda _: LOCAL, read_only=True)
    async with Client(create_server(host)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "crawl_site" not in names
        assert len(names) == 9
