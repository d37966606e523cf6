"""Clients and servers for the tests of fetching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.guard import GuardPolicy
from forager.fetch.response import Limits
from servers.hostile import HostileServer


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that crawls run on; it differs from asyncio's own in sockets and TLS."""
    return {"uvloop": uvloop.new_event_loop}


QUICK = Limits(connect=5, read=5, total=10, body=1024 * 1024)
LOCAL = GuardPolicy(allow_private=True)


@pytest.fixture
async def server() -> AsyncIterator[HostileServer]:
    async with HostileServer() as running:
        yield running


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    options = ClientOptions(
        user_agent="ForagerTest/1.0", limits=QUICK, guard=LOCAL, pool=PoolSize(total=8)
    )
    async with Client(options) as running:
        yield running
