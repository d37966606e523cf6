from __future__ import annotations

import asyncio

import pytest

from forager.db.database import Database
from forager.errors import Retry
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Request
from forager.fetch.sender import Sender
from servers.base import LoopbackServer
from servers.hostile import HostileServer
from support.budgets import CrawlBudgets

OPTIONS = ClientOptions(user_agent="ForagerTest/1.0", guard=GuardPolicy(allow_private=True))
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class ClosingServer(LoopbackServer):
    """Answers the first request of each connection, and closes it when the second arrives."""

    requests = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (ANSWER, b""):
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(answer)
            await writer.drain()


async def test_a_request_on_a_stale_connection_is_repeated_in_another_slot(
    database: Database,
) -> None:
    slots: list[None] = []
    async with (
        ClosingServer() as server,
        Client(OPTIONS) as client,
        CrawlBudgets(database, delay=0.0, concurrency=5) as budgets,
    ):
        sender = Sender(client, budgets)
        for _ in range(2):
            response = await sender.send(
                Request(f"http://127.0.0.1:{server.port}/"),
                None,
                on_slot=lambda: slots.append(None),
            )
            assert response.body == b"ok"
    assert len(slots) == server.requests == 3


async def test_a_request_on_a_new_connection_is_not_repeated(database: Database) -> None:
    async with (
        HostileServer() as server,
        Client(OPTIONS) as client,
        CrawlBudgets(database, delay=0.0, concurrency=5) as budgets,
    ):
        with pytest.raises(Retry):
            await Sender(client, budgets).send(Request(f"{server.url}/reset"), None)
    assert len(server.requests) == 1
