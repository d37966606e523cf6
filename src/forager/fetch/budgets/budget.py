"""A host's budget, kept in the database and shared by all jobs, processes and machines.

Each runner has one `Budgets`. For every domain in use a keeper exchanges reports for permits and
slots about once a second, and at once when a request waits for it. In between, requests are let go
from what is known here, without a round trip.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import inf
from typing import Self
from uuid import UUID

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind, Retry, RotateProxy
from forager.extract.hosts import is_address, parent_domains
from forager.fetch.budgets import store
from forager.fetch.budgets.accounts import DomainAccount, HostState, HostWait, Waiter, wait_of
from forager.fetch.budgets.exchange import ServerClock, Terms, Wanted
from forager.fetch.budgets.slots import DomainInactive, HostResting, Slot
from forager.logs import get_logger

log = get_logger("budgets")

DEFAULT_DELAY = 1.0
DEFAULT_CONCURRENCY = 5

RENEW_EVERY = 1.0
STARVED_RENEW_EVERY = 0.25
RESERVE_AHEAD = 1.0
PERMITS_LAST = 10.0
ROW_KNOWN_FOR = 15.0
"""After so long the row of a host is looked up again: a person may have added a nearer one."""
SHORTEST_PAUSE = 0.01
PAUSE_AFTER_TROUBLE = 0.5
PATIENCE_WITH_DATABASE = 5.0
LEAVE_WITHIN = 3.0
CONNECTIONS = 2


@dataclass(slots=True)
class _Host:
    account: DomainAccount
    robots_delay: float | None
    known_until: float


class Budgets:
    """Asks before every request; one per runner."""

    def __init__(
        self, database: Database, *, holder: UUID, delay: float | None, concurrency: int | None
    ) -> None:
        self._database = database
        self._holder = holder
        self._delay = delay
        self._concurrency = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        self._clock = ServerClock()
        self._hosts: dict[str, _Host] = {}
        self._accounts: dict[int, DomainAccount] = {}
        self._keepers: dict[int, asyncio.Task[None]] = {}
        self._finding = asyncio.Lock()
        self._leaving = False
        # a runner has few connections, and its commits must not queue behind budgets
        self._few = asyncio.Semaphore(CONNECTIONS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop_keepers()
        with suppress(TimeoutError, DatabaseUnavailable, DiskFull):
            async with asyncio.timeout(LEAVE_WITHIN):
                await self._leave()

    async def acquire(
        self,
        host: str,
        *,
        robots_delay: float | None = None,
        proxy_id: int | None = None,
        max_wait: float = 60.0,
        background: bool = False,
    ) -> Slot:
        """Wait for the host's next slot and a connection. No `robots_delay`: what was said before.

        A `background` request takes no slot and no connection while pages of the host wait.
        Raises HostResting when that is further away than `max_wait`, DomainInactive when the
        domain is disabled, DatabaseUnavailable when that is unknown.
        """
        known = self._hosts.get(host)
        if known is not None and robots_delay in (None, known.robots_delay):
            now = local_time()
            account = known.account
            if (
                not account.waiting
                and now < known.known_until
                and account.ready_at(now, proxy_id) <= now
                and not (background and account.background_waits)
            ):
                return account.take(now, proxy_id)
        waiter = Waiter(proxy_id, local_time() + max_wait, background)
        return await self._wait(host, robots_delay, waiter)

    def state(self, host: str) -> HostState | None:
        """The budget of a host that was asked lately, as known here."""
        known = self._hosts.get(host)
        return None if known is None else known.account.state()

    def rooms(self, begun: Mapping[int, int]) -> dict[int, int]:
        """Pages that can be sent within a second beside those that were `begun`, by domain."""
        unknown = {domain_id: max(0, 1 - pages) for domain_id, pages in begun.items()}
        known = {
            domain_id: account.room(begun.get(domain_id, 0))
            for domain_id, account in self._accounts.items()
        }
        return unknown | known

    def waits(self) -> list[HostWait]:
        """What pages wait for, host by host; empty if all go as fast as they may."""
        now = local_time()
        found = (wait_of(account, now) for account in self._accounts.values())
        return [wait for wait in found if wait is not None]

    async def renew(self, host: str) -> None:
        """Exchange with the database now, as the keeper does by itself."""
        known = self._hosts.get(host)
        if known is not None:
            await self._exchange(known.account)

    # --- waiting ---------------------------------------------------------------------------

    async def _wait(self, host: str, robots_delay: float | None, waiter: Waiter) -> Slot:
        account = await self._account(host, robots_delay, waiter.deadline)
        limit = waiter.deadline - local_time() + PATIENCE_WITH_DATABASE
        with account.queued(waiter) as turn:
            try:
                async with asyncio.timeout(limit), turn:
                    return await self._take_turn(account, host, waiter)
            except TimeoutError:
                raise _too_long(account, host, waiter.proxy_id) from None

    async def _take_turn(self, account: DomainAccount, host: str, waiter: Waiter) -> Slot:
        proxy_id = waiter.proxy_id
        while True:
            now = local_time()
            ready_at = account.ready_at(now, proxy_id)
            if waiter.background and account.background_waits:
                ready_at = max(ready_at, now + RENEW_EVERY)
            if ready_at <= now:
                return account.take(now, proxy_id)
            if now < account.fresh_until:
                _refuse(account, host, waiter, ready_at)
            if account.trouble is not None and not isinstance(account.trouble, DatabaseUnavailable):
                raise account.trouble
            if account.lacks_exchange(now, proxy_id):
                account.wanted.set()
            account.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(ready_at - now, RENEW_EVERY)):
                    await account.changed.wait()

    # --- which row applies -----------------------------------------------------------------

    async def _account(
        self, host: str, robots_delay: float | None, deadline: float
    ) -> DomainAccount:
        async with self._finding:
            known = self._hosts.get(host)
            if known is None or local_time() >= known.known_until:
                known = await self._find(host, deadline)
            if robots_delay is not None:
                known.robots_delay = robots_delay
                known.account.heed_robots(host, robots_delay)
            return known.account

    async def _find(self, host: str, deadline: float) -> _Host:
        while True:
            try:
                domain_id, name = await self._find_row(host)
                break
            except DatabaseUnavailable:
                if local_time() >= deadline:
                    raise
                await asyncio.sleep(PAUSE_AFTER_TROUBLE)
        account = self._accounts.get(domain_id)
        if account is None:
            account = self._open_account(domain_id, name)
        known = self._hosts[host] = _Host(account, None, local_time() + ROW_KNOWN_FOR)
        return known

    async def _find_row(self, host: str) -> tuple[int, str]:
        names = [host, *parent_domains(host)]
        async with self._connection() as connection:
            while True:
                row = await store.select_domain(connection, names)
                if row is not None:
                    return row
                await store.insert_domain(connection, host, base_url(host))

    def _open_account(self, domain_id: int, name: str) -> DomainAccount:
        account = self._accounts[domain_id] = DomainAccount(domain_id, name, self._clock)
        self._keepers[domain_id] = asyncio.create_task(self._keep(account))
        return account

    # --- keeping ---------------------------------------------------------------------------

    async def _keep(self, account: DomainAccount) -> None:
        """Exchange with the database for as long as the domain is in use."""
        account.wanted.set()
        while True:
            pause = STARVED_RENEW_EVERY if account.is_starved else RENEW_EVERY
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await account.wanted.wait()
            account.wanted.clear()
            if self._leaving:
                return
            await self._exchange_or_note(account)
            if self._accounts.get(account.domain_id) is not account:
                return  # its row is gone
            if account.is_idle(local_time()) and await self._close_account(account):
                return
            await asyncio.sleep(SHORTEST_PAUSE)

    async def _exchange_or_note(self, account: DomainAccount) -> None:
        try:
            await self._exchange(account)
        except Exception as error:
            if account.trouble is None:
                log.warning("budget not renewed", domain=account.name, error=str(error))
            account.trouble = error
            account.changed.set()
            await asyncio.sleep(PAUSE_AFTER_TROUBLE)

    async def _exchange(self, account: DomainAccount) -> None:
        """Report, renew, reserve."""
        async with self._connection() as connection:
            if not self._clock.is_known:
                await self._look_at_the_clock(connection)
            wanted = self._wanted(account)
            await self._write_slow_downs(connection, account, wanted.terms)
            sent_at = local_time()
            try:
                given, pairs, clock = await store.exchange(connection, wanted)
            except BaseException:
                account.answers = account.answers.plus(wanted.answers)
                raise
            self._clock.observe(sent_at, local_time(), clock)
        if given is None:
            self._forget(account)
            raise Retry(f"the domain {account.name} was deleted", kind=ErrorKind.NOT_ALLOWED)
        account.learn(wanted, given, pairs, sent_at)

    async def _look_at_the_clock(self, connection: Connection) -> None:
        """Before anything is reserved: the response time decides how many slots are requested."""
        sent_at = local_time()
        said = await store.select_clock(connection)
        self._clock.observe(sent_at, local_time(), said)

    def _wanted(self, account: DomainAccount) -> Wanted:
        slots = account.slots_wanted()
        direct = slots.pop(None, 0)
        return Wanted(
            domain_id=account.domain_id,
            holder=self._holder,
            terms=self._terms(account),
            direct=direct,
            proxied={proxy: count for proxy, count in slots.items() if proxy is not None},
            patience=account.patience(local_time()),
            busy=account.hold(),
            waiting=account.pages_waiting,
            returned=account.take_unused(),
            answers=account.take_answers(),
            horizon=RESERVE_AHEAD,
            slack=account.slack,
            permits_last=PERMITS_LAST,
        )

    def _terms(self, account: DomainAccount) -> Terms:
        default = 0.0 if is_loopback(account.name) else DEFAULT_DELAY
        delay = default if self._delay is None else self._delay
        return Terms(delay, self._concurrency, account.robots_delay)

    async def _write_slow_downs(
        self, connection: Connection, account: DomainAccount, terms: Terms
    ) -> None:
        until, seen = account.unwritten_block, account.unwritten_slow
        if until:
            seconds = until - local_time()
            await store.block_domain(connection, account.domain_id, seconds)
            account.block_written(until)
        if seen is not None:
            await store.slow_domain(connection, account.domain_id, terms, seen=seen)
            account.unwritten_slow = None

    async def _close_account(self, account: DomainAccount) -> bool:
        """Return the permits; False if a new request came in the meantime."""
        account.stop_sending()
        with suppress(DatabaseUnavailable, DiskFull):
            async with self._connection() as connection:
                await self._return_slots(connection, account)
                await store.delete_permits(connection, self._holder, account.domain_id)
        if account.waiting:
            return False
        self._forget(account)
        return True

    def _forget(self, account: DomainAccount) -> None:
        self._accounts.pop(account.domain_id, None)
        self._keepers.pop(account.domain_id, None)
        for host in [host for host, known in self._hosts.items() if known.account is account]:
            del self._hosts[host]

    async def _stop_keepers(self) -> None:
        """Between two exchanges if possible: a cancelled one costs its connection."""
        self._leaving = True
        for account in self._accounts.values():
            account.wanted.set()
        keepers = list(self._keepers.values())
        if keepers:
            _, late = await asyncio.wait(keepers, timeout=LEAVE_WITHIN)
            for keeper in late:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def _leave(self) -> None:
        async with self._connection() as connection:
            for account in self._accounts.values():
                await self._write_slow_downs(connection, account, self._terms(account))
                await self._return_slots(connection, account)
            await store.delete_permits(connection, self._holder)

    async def _return_slots(self, connection: Connection, account: DomainAccount) -> None:
        returned = account.take_all()
        if returned is not None:
            await store.return_slots(connection, account.domain_id, returned)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        async with self._few, self._database.connection() as connection:
            yield connection


def _refuse(account: DomainAccount, host: str, waiter: Waiter, ready_at: float) -> None:
    """Raise if no slot can come before the deadline."""
    proxy_id, deadline = waiter.proxy_id, waiter.deadline
    if not account.is_active:
        raise DomainInactive(account.name)
    if proxy_id in account.unknown_proxies:
        raise RotateProxy("the proxy was removed", kind=ErrorKind.NOT_ALLOWED)
    until = account.resting_until(proxy_id)
    if ready_at != inf:
        until = max(until, ready_at)
    now = local_time()
    if until > deadline or now >= deadline:
        raise HostResting(host, max(0.0, until - now), _reason(account, now))


def _too_long(account: DomainAccount, host: str, proxy_id: int | None) -> Exception:
    if account.trouble is not None:
        return account.trouble
    now = local_time()
    seconds = max(account.resting_until(proxy_id) - now, account.delay)
    return HostResting(host, seconds, _reason(account, now))


def _reason(account: DomainAccount, now: float) -> str:
    if account.blocked_until > now:
        return "the host asked to be left alone (Retry-After)"
    if account.in_use >= account.permits:
        return "all its connections are in use"
    if account.slow_delay > 0:
        return f"it is slowed down to one request every {account.delay:g} s"
    return f"one request is allowed in {account.delay:g} s"


def base_url(host: str) -> str:
    """A guess: only the host is known here."""
    _, colon, port = host.rpartition(":")
    plain = (colon and port.isdigit()) or is_loopback(host)
    return f"{'http' if plain else 'https'}://{host}/"


def is_loopback(host: str) -> bool:
    """Whether a host, with or without port, is this machine by its name alone."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit():
        name = host
    if name == "localhost" or name.endswith(".localhost"):
        return True
    return is_address(name) and ipaddress.ip_address(name.strip("[]")).is_loopback
