from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from forager.clock import local_time
from forager.db.database import Database
from forager.errors import ErrorKind, GiveUp, WorkFailed
from forager.extract.hosts import host_of
from forager.fetch.budgets.slots import DomainInactive
from forager.fetch.client import Client, ClientOptions
from forager.fetch.robots import gate as robots_gate
from forager.fetch.robots.gate import RobotsGate, origin_of
from forager.fetch.sender import Sender
from servers.base import LoopbackServer
from support.budgets import CrawlBudgets
from support.sql import execute

AGENT = "ForagerTest/1.0 (+https://forager.example)"
RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\nSitemap: https://a.example/s.xml\n"

Gate = Callable[..., RobotsGate]


class RobotsServer(LoopbackServer):
    """Answers every request with what `answers` has for its path."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, tuple[str, bytes]] = {}
        self.asked: list[str] = []
        self.reached = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, status: str, body: bytes = b"", path: str = "/robots.txt") -> None:
        """What is answered from now on; further header lines may follow the status."""
        self.answers[path] = (status, body)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ", 2)[1].decode()
            self.asked.append(path)
            self.reached.set()
            await self.may_answer.wait()
            status, body = self.answers.get(path, ("404 Not Found", b""))
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )
            await writer.drain()


@pytest.fixture
async def host() -> AsyncIterator[RobotsServer]:
    async with RobotsServer() as running:
        running.answer("200 OK", RULES)
        yield running


@pytest.fixture
async def budgets(database: Database) -> AsyncIterator[CrawlBudgets]:
    async with CrawlBudgets(database, delay=None, concurrency=None) as running:
        yield running


@pytest.fixture
def open_gate(database: Database, budgets: CrawlBudgets, client: Client) -> Gate:
    """A gate as another process would have: nothing in memory yet."""

    def open_one(*, ignore: bool = False) -> RobotsGate:
        return RobotsGate(database, Sender(client, budgets), user_agent=AGENT, ignore=ignore)

    return open_one


@pytest.fixture
def gate(open_gate: Gate) -> RobotsGate:
    return open_gate()


async def let_expire(database: Database, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """What time would do, in the database and in memory."""
    await execute(database, "UPDATE robots_files SET expires_at = now()")
    if monkeypatch is not None:
        monkeypatch.setattr(robots_gate, "local_time", lambda: local_time() + 90_000)


async def test_rules_are_obeyed_and_named(gate: RobotsGate, host: RobotsServer) -> None:
    allowed = await gate.verdict(f"{host.url}/public")
    assert (allowed.allowed, allowed.rule, allowed.deferred_for) == (True, None, None)
    refused = await gate.verdict(f"{host.url}/private/page")
    assert (refused.allowed, refused.rule) == (False, "Disallow: /private/")
    assert refused.reason == "line 2 of robots.txt: Disallow: /private/"
    assert await gate.crawl_delay(f"{host.url}/") == 0.5
    assert await gate.sitemaps(f"{host.url}/") == ["https://a.example/s.xml"]
    assert host.asked == ["/robots.txt"]


async def test_many_ask_and_one_fetches(gate: RobotsGate, host: RobotsServer) -> None:
    verdicts = await asyncio.gather(*(gate.verdict(f"{host.url}/{n}") for n in range(50)))
    assert all(verdict.allowed for verdict in verdicts)
    assert host.asked == ["/robots.txt"]


async def test_others_find_it_in_the_database(
    open_gate: Gate, host: RobotsServer, database: Database
) -> None:
    await open_gate().verdict(f"{host.url}/")
    host.answer("500 Broken")
    assert not (await open_gate().verdict(f"{host.url}/private/")).allowed
    assert host.asked == ["/robots.txt"]


async def test_each_origin_has_its_own(gate: RobotsGate, host: RobotsServer) -> None:
    async with RobotsServer() as other:
        assert not (await gate.verdict(f"{host.url}/private/")).allowed
        assert (await gate.verdict(f"{other.url}/private/")).allowed


async def test_a_busy_host_defers_and_is_obeyed_once_it_answers(
    gate: RobotsGate, host: RobotsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.answer("503 Busy")
    deferred = await gate.verdict(f"{host.url}/private/")
    assert not deferred.allowed
    assert deferred.deferred_for is not None
    assert deferred.deferred_for > 0
    assert deferred.rule is None
    assert "503" in deferred.reason
    assert await gate.crawl_delay(f"{host.url}/") is None
    assert host.asked == ["/robots.txt"]  # it was asked once, not for every URL

    host.answer("200 OK", RULES)
    await let_expire(database, monkeypatch)
    verdict = await gate.verdict(f"{host.url}/private/")
    assert (verdict.allowed, verdict.deferred_for) == (False, None)
    assert (await gate.verdict(f"{host.url}/")).allowed


async def test_a_refusal_slows_the_whole_host_down(
    gate: RobotsGate, host: RobotsServer, budgets: CrawlBudgets
) -> None:
    host.answer("429 Too Many Requests\r\nRetry-After: 3000")
    deferred = await gate.verdict(f"{host.url}/")
    assert deferred.deferred_for is not None
    assert deferred.deferred_for > 2900
    account = budgets._hosts[host_of(host.url)].account
    assert account.blocked_until - local_time() > 2900


async def test_a_host_that_cannot_be_reached_defers(gate: RobotsGate) -> None:
    async with RobotsServer() as gone:
        url = f"{gone.url}/"
    deferred = await gate.verdict(url)
    assert deferred.deferred_for is not None
    assert "could not be reached" in deferred.reason


async def test_a_remembered_failure_does_not_grow_with_each_check(gate: RobotsGate) -> None:
    lengths = set()
    for _ in range(3):
        with pytest.raises(WorkFailed) as met:
            await gate.check("http://127.0.0.1:1/page")
        lengths.add(len(met.traceback))
    assert len(lengths) == 1


async def test_a_resting_host_defers(
    open_gate: Gate, host: RobotsServer, database: Database, budgets: CrawlBudgets
) -> None:
    with await budgets.acquire(host_of(host.url)) as slot:
        slot.slow_down(500)
    deferred = await open_gate().verdict(f"{host.url}/")
    assert deferred.deferred_for is not None
    assert 490 < deferred.deferred_for <= 500
    assert "Retry-After" in deferred.reason
    assert host.asked == []


async def test_old_rules_hold_while_a_refresh_fails(
    gate: RobotsGate, host: RobotsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gate.verdict(f"{host.url}/")
    host.answer("500 Broken")
    await let_expire(database, monkeypatch)
    refused = await gate.verdict(f"{host.url}/private/")
    assert (refused.allowed, refused.deferred_for) == (False, None)
    assert (await gate.verdict(f"{host.url}/")).allowed
    assert host.asked == ["/robots.txt", "/robots.txt"]


async def test_new_rules_are_taken_over(
    gate: RobotsGate, host: RobotsServer, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not (await gate.verdict(f"{host.url}/private/")).allowed
    host.answer("200 OK", b"User-agent: *\nDisallow: /new/\n")
    await let_expire(database, monkeypatch)
    assert (await gate.verdict(f"{host.url}/private/")).allowed
    assert not (await gate.verdict(f"{host.url}/new/")).allowed


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "410 Gone"])
async def test_without_a_file_everything_is_allowed(
    gate: RobotsGate, host: RobotsServer, status: str
) -> None:
    host.answer(status)
    verdict = await gate.verdict(f"{host.url}/private/")
    assert verdict.allowed
    assert "there is no robots.txt" in verdict.reason


async def test_redirects_are_followed(gate: RobotsGate, host: RobotsServer) -> None:
    async with RobotsServer() as target:
        target.answer("200 OK", RULES, path="/elsewhere")
        host.answer(f"302 Found\r\nLocation: {target.url}/elsewhere")
        assert not (await gate.verdict(f"{host.url}/private/")).allowed
        assert target.asked == ["/elsewhere"]


async def test_redirects_without_end_mean_no_rules(gate: RobotsGate, host: RobotsServer) -> None:
    host.answer("302 Found\r\nLocation: /robots.txt")
    assert (await gate.verdict(f"{host.url}/private/")).allowed
    assert len(host.asked) == 6


async def test_a_redirect_to_nowhere_means_no_rules(gate: RobotsGate, host: RobotsServer) -> None:
    host.answer("302 Found\r\nLocation: gopher://x/")
    assert (await gate.verdict(f"{host.url}/private/")).allowed


async def test_robots_can_be_ignored(open_gate: Gate, host: RobotsServer) -> None:
    gate = open_gate(ignore=True)
    assert (await gate.verdict(f"{host.url}/private/")).allowed
    assert await gate.crawl_delay(f"{host.url}/") is None
    assert host.asked == []
    assert await gate.sitemaps(f"{host.url}/") == ["https://a.example/s.xml"]


async def test_what_the_guard_refuses_is_refused_here(
    database: Database, budgets: CrawlBudgets, host: RobotsServer
) -> None:
    async with Client(ClientOptions(user_agent=AGENT)) as guarded:
        gate = RobotsGate(database, Sender(guarded, budgets), user_agent=AGENT)
        with pytest.raises(GiveUp) as refused:
            await gate.verdict(f"{host.url}/")
    assert refused.value.kind is ErrorKind.NOT_ALLOWED
    assert host.asked == []


async def test_an_inactive_domain_is_not_asked(
    gate: RobotsGate, host: RobotsServer, database: Database
) -> None:
    await execute(
        database,
        "INSERT INTO domains (domain_name, base_url, is_active) VALUES (%s, '', false)",
        host_of(host.url),
    )
    with pytest.raises(DomainInactive):
        await gate.verdict(f"{host.url}/")
    assert host.asked == []


async def test_a_cancelled_waiter_does_not_stop_the_others(
    gate: RobotsGate, host: RobotsServer
) -> None:
    host.may_answer.clear()
    first, second = (asyncio.create_task(gate.verdict(f"{host.url}/private/")) for _ in range(2))
    await host.reached.wait()
    first.cancel()
    host.may_answer.set()
    assert not (await second).allowed
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_the_oldest_rules_make_room(
    gate: RobotsGate, host: RobotsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(robots_gate, "KNOWN_BYTES", 4 * robots_gate.ORIGIN_BYTES)
    await gate.verdict(f"{host.url}/")
    for port in range(1, 9):
        await gate.verdict(f"http://127.0.0.1:{port}/")  # nothing answers there
    assert 1 <= len(gate._robots._origins) <= 4
    assert f"{host.url}" not in gate._robots._origins
    assert not (await gate.verdict(f"{host.url}/private/")).allowed
    assert len(host.asked) == 1  # the database has the rules


def test_origins() -> None:
    assert origin_of("https://a.example:81/x//y") == "https://a.example:81"
    assert origin_of("https://a.example") == "https://a.example"
    assert host_of("https://a.example:81/x") == "a.example:81"
