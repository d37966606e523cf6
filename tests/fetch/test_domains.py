from __future__ import annotations

import pytest

from forager.db.database import Database
from forager.errors import AlreadyThere, InvalidInput, NotFound
from forager.fetch.domains.service import DomainChanges, Domains, domain_name
from support.budgets import CrawlBudgets, renew


@pytest.fixture
def domains(database: Database) -> Domains:
    return Domains(database)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Example.COM", "example.com"),
        (" example.com ", "example.com"),
        ("https://Bücher.example/x?y", "xn--bcher-kva.example"),
        ("https://a.example:8443/", "a.example:8443"),
        ("example.com:443", "example.com"),
        ("example.com:80", "example.com"),
        ("localhost:8000", "localhost:8000"),
        ("[::1]:81", "[::1]:81"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert domain_name(text) == name


@pytest.mark.parametrize("text", ["", " ", "a b", "ftp://x/", "..", "*", "http://", "a" * 300])
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a host"):
        domain_name(text)


async def test_add_and_get(domains: Domains) -> None:
    added = await domains.add(
        "HTTPS://Shop.example/", DomainChanges(delay=0.25, concurrency=3, per_proxy_only=True)
    )
    assert (added.domain_name, added.base_url) == ("shop.example", "https://shop.example/")
    assert (added.crawl_delay_seconds, added.max_concurrent_requests) == (0.25, 3)
    assert (added.per_proxy_only, added.is_active) == (True, True)
    assert await domains.get("shop.example") == added
    assert await domains.get("www.shop.example") == added
    with pytest.raises(AlreadyThere, match=r"there is a domain shop\.example already"):
        await domains.add("shop.example")
    with pytest.raises(NotFound, match="domains add other"):
        await domains.get("other.example")


async def test_set_and_unset(domains: Domains) -> None:
    await domains.add("shop.example", DomainChanges(delay=2, concurrency=3))
    changed = await domains.set("shop.example", DomainChanges(delay=None, active=False))
    assert changed.crawl_delay_seconds is None
    assert changed.max_concurrent_requests == 3
    assert not changed.is_active
    changed = await domains.set("shop.example", DomainChanges(delay=0, concurrency=None))
    assert (changed.crawl_delay_seconds, changed.max_concurrent_requests) == (0, None)
    assert not changed.is_active
    with pytest.raises(NotFound):
        await domains.set("www.shop.example", DomainChanges(active=True))


@pytest.mark.parametrize(
    "changes",
    [
        DomainChanges(delay=-1), DomainChanges(delay=float("nan")),
        DomainChanges(delay=float("inf")), DomainChanges(delay=1e9),
        DomainChanges(concurrency=0), DomainChanges(concurrency=10**9),
    ],
)  # fmt: skip
async def test_values_that_cannot_be(domains: Domains, changes: DomainChanges) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        await domains.add("shop.example", changes)
    assert (await domains.list_domains()).items == []


async def test_list_by_pages(domains: Domains) -> None:
    names = [f"{letter}.example" for letter in "abcde"]
    for name in reversed(names):
        await domains.add(name, DomainChanges(active=name != "c.example"))
    seen, cursor = [], None
    while True:
        page = await domains.list_domains(cursor=cursor, limit=2)
        seen += [domain.domain_name for domain in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == names
    (inactive,) = (await domains.list_domains(active=False)).items
    assert inactive.domain_name == "c.example"
    assert len((await domains.list_domains(active=True)).items) == 4


@pytest.mark.parametrize("cursor", ["?", "", "!!!!", "AA==", "é"])
async def test_a_cursor_that_no_list_gave(domains: Domains, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        await domains.list_domains(cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_limits(domains: Domains, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        await domains.list_domains(limit=limit)


async def test_what_is_slowed_down_is_shown_and_can_be_forgotten(
    domains: Domains, database: Database
) -> None:
    await domains.add("calm.example")
    async with CrawlBudgets(database, delay=0, concurrency=4) as budgets:
        with await budgets.acquire("slow.example") as slot:
            slot.slow_down(None)
        with await budgets.acquire("busy.example") as slot:
            slot.slow_down(600)
            await renew(budgets, "busy.example")
        await renew(budgets, "slow.example")
        busy, slow = (await domains.list_domains(slowed=True)).items
        assert busy.blocked_until is not None
        assert (busy.runners, busy.connections) == (1, 4)
        assert (slow.blocked_until, slow.slow_delay) == (None, 1)
        for domain in (busy, slow):
            calm = await domains.forget_slow_down(domain.domain_name)
            assert (calm.blocked_until, calm.slow_delay) == (None, 0)
    assert (await domains.list_domains(slowed=True)).items == []


async def test_a_change_reaches_a_running_crawl(domains: Domains, database: Database) -> None:
    async with CrawlBudgets(database, delay=0, concurrency=4) as budgets:
        (await budgets.acquire("shop.example")).release()
        await domains.set("shop.example", DomainChanges(delay=3, concurrency=2))
        await renew(budgets, "shop.example")
        account = budgets._hosts["shop.example"].account
        assert (account.delay, account.permits) == (3, 2)


async def test_several_domains_are_changed_together(domains: Domains) -> None:
    for host in ("shop.example", "a.shop.example", "b.shop.example", "axshop.example"):
        await domains.add(host)
    changes = DomainChanges(proxy_rate=2.5)
    changed = await domains.set_many(["*.shop.example", "shop.example", "a.shop.example"], changes)
    names = ["a.shop.example", "b.shop.example", "shop.example"]
    assert [(d.domain_name, d.proxy_rate) for d in changed] == [(name, 2.5) for name in names]
    with pytest.raises(NotFound):
        await domains.set_many(["shop.example", "other.example"], DomainChanges(proxy_rate=None))
    assert (await domains.get("shop.example")).proxy_rate == 2.5
    with pytest.raises(NotFound, match="matches"):
        await domains.set_many(["*.org"], changes)
    for rate in (0.5, 6, float("nan")):
        with pytest.raises(InvalidInput, match="1 to 5"):
            await domains.set_many(["shop.example"], DomainChanges(proxy_rate=rate))
