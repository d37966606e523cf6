"""Clients and servers for the tests of fetching."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

# the servers are shared by the tests of several packages
sys.path.insert(0, str(Path(__file__).parents[1]))

from forager.fetch import Client, ClientOptions, GuardPolicy, Limits, PoolSize
from servers.hostile import HostileServer

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
