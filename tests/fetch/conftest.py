"""Clients and servers for the tests of fetching."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import uvloop

from fetch.budget_rows import Open
from fetch.proxy_rows import LOCAL, OPTIONS
from forager.db.database import Database
from forager.fetch.budgets import budget
from forager.fetch.client import Client, ClientOptions
from forager.fetch.connector import PoolSize
from forager.fetch.proxies.probe import ProxyProber
from forager.fetch.proxies.service import Proxies, ProxyPool
from forager.fetch.response import ResponseLimits
from forager.secrets import Vault
from forager.settings import Settings
from servers.hostile import HostileServer
from support.budgets import CrawlBudgets


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that crawls run on; it differs from asyncio's own in sockets and TLS."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for a connection is refused soon after its limit."""
    monkeypatch.setattr(budget, "DATABASE_GRACE", 0.2)


QUICK = ResponseLimits(connect=5, read=5, total=10, body=1024 * 1024)


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


@pytest.fixture
async def open_budgets(database: Database) -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        async def open_one(
            *, delay: float | None = 0.0, concurrency: int | None = None
        ) -> CrawlBudgets:
            return await stack.enter_async_context(
                CrawlBudgets(database, delay=delay, concurrency=concurrency)
            )

        yield open_one


@pytest.fixture
def no_quiet_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures of a proxy count at once, instead of once per period."""
    monkeypatch.setattr("forager.fetch.proxies.service.QUIET_SECONDS", 0.0)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(Settings(home=tmp_path / "home"))


@pytest.fixture
def proxies(database: Database, vault: Vault) -> Proxies:
    return Proxies(database, vault)


@pytest.fixture
def pool(database: Database, vault: Vault, no_quiet_time: None) -> ProxyPool:
    return ProxyPool(database, vault, LOCAL)


@pytest.fixture
def prober(database: Database, vault: Vault) -> ProxyProber:
    return ProxyProber(database, vault, OPTIONS)
