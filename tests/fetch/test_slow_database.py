"""A database that answers slowly delays requests; it must not keep them from being sent at all."""

from __future__ import annotations

import pytest

from chaos.connection_proxy import ConnectionProxy
from forager.db.database import Database
from forager.fetch.budgets.accounts import FRESH_FOR, DomainAccount
from forager.fetch.budgets.exchange import ServerClock
from support.budgets import CrawlBudgets

HOST = "slow-database.example"


@pytest.mark.parametrize("delay", [0.02, 0.2])
async def test_an_answer_later_than_its_slot(database_url: str, delay: float) -> None:
    """One who waits alone gets one slot, and it is over when the database's answer arrives."""
    async with ConnectionProxy(database_url) as line, Database(line.url, max_size=4) as database:
        line.delay = 0.03
        async with CrawlBudgets(database, delay=delay, concurrency=2) as budgets:
            for _ in range(3):
                (await budgets.acquire(HOST, max_wait=50.0)).release()


def test_a_suspended_process_does_not_reserve_hours_of_a_host() -> None:
    clock = ServerClock()
    clock.observe(sent=100.0, received=4000.0, said=50.0)
    assert DomainAccount(1, HOST, clock).slack == FRESH_FOR
