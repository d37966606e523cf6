"""Which row of `domains` sets the budget of a host."""

from __future__ import annotations

import asyncio

import pytest

from fetch.budget_rows import HOST, Open, add_row, column
from forager.db.database import Database
from forager.errors import ErrorKind, Retry
from forager.extract.hosts import is_loopback, parent_domains
from forager.fetch.budgets.slots import DomainInactive
from support.budgets import renew
from support.sql import execute


async def test_a_row_covers_subdomains_without_one(database: Database, open_budgets: Open) -> None:
    await add_row(database, "example", crawl_delay_seconds=7)
    await add_row(database, "shop.example", crawl_delay_seconds=0)
    await add_row(database, "de.shop.example", crawl_delay_seconds=0)
    budgets = await open_budgets(delay=None)
    applied = {}
    for host in ("shop.example", "a.b.shop.example", "de.shop.example", "x.de.shop.example"):
        (await budgets.acquire(host)).release()
        account = budgets._hosts[host].account
        applied[host] = account.name
    assert applied == {
        "shop.example": "shop.example",
        "a.b.shop.example": "shop.example",
        "de.shop.example": "de.shop.example",
        "x.de.shop.example": "de.shop.example",
    }


async def test_a_host_without_a_row_gets_one(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    await asyncio.gather(*(budgets.acquire("docs.shop.example:8443") for _ in range(5)))
    rows = await execute(database, "SELECT domain_name, base_url FROM domains")
    assert rows == [("docs.shop.example:8443", "http://docs.shop.example:8443/")]


@pytest.mark.parametrize(
    ("host", "parents"),
    [
        ("a.b.example.com", ["b.example.com", "example.com"]),
        ("a.example.com:81", ["example.com:81"]),
        ("localhost:8000", []),
        ("10.1.2.3", []),
        ("[2001:db8::1]:81", []),
        ("[2001:db8::1]", []),
    ],
)
def test_parents(host: str, parents: list[str]) -> None:
    assert parent_domains(host) == parents


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True), ("localhost:80", True), ("a.localhost", True),
        ("127.8.9.1:8080", True), ("[::1]:80", True), ("[::1]", True),
        ("localhost.example", False), ("10.0.0.1", False), ("[2001:db8::1]", False),
    ],
)  # fmt: skip
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


async def test_defaults(open_budgets: Open) -> None:
    budgets = await open_budgets(delay=None)
    seen = {}
    for host in ("127.0.0.1:8000", HOST):
        (await budgets.acquire(host)).release()
        account = budgets._hosts[host].account
        seen[host] = (account.delay, account.permits)
    assert seen == {"127.0.0.1:8000": (0.0, 5), HOST: (1.0, 5)}


async def test_the_domain_comes_before_the_crawl_and_robots_before_both(
    database: Database, open_budgets: Open
) -> None:
    await add_row(database, crawl_delay_seconds=0.3, max_concurrent_requests=2)
    budgets = await open_budgets(delay=9, concurrency=64)
    (await budgets.acquire(HOST)).release()
    account = budgets._hosts[HOST].account
    assert (account.delay, account.permits) == (0.3, 2)
    (await budgets.acquire(HOST, robots_delay=0.5)).release()
    account = budgets._hosts[HOST].account
    assert account.delay == 0.5


async def test_an_inactive_domain_is_not_crawled(database: Database, open_budgets: Open) -> None:
    await add_row(database, is_active=False)
    budgets = await open_budgets()
    with pytest.raises(DomainInactive, match=r"domains enable shop\.example") as refused:
        await budgets.acquire("www.shop.example")
    assert refused.value.kind is ErrorKind.NOT_ALLOWED


async def test_a_domain_switched_off_meanwhile(database: Database, open_budgets: Open) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await execute(database, "UPDATE domains SET is_active = false")
    await renew(budgets, HOST)
    with pytest.raises(DomainInactive):
        await budgets.acquire(HOST)


async def test_a_row_that_was_deleted_is_created_again(
    database: Database, open_budgets: Open
) -> None:
    budgets = await open_budgets()
    (await budgets.acquire(HOST)).release()
    await execute(database, "DELETE FROM domains")
    with pytest.raises(Retry, match="was deleted"):
        await renew(budgets, HOST)
    (await budgets.acquire(HOST)).release()
    assert await column(database, "is_active")
