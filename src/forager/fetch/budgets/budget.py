"""Budgets of hosts, stored in the database and shared by all jobs, processes and machines.

Each runner has one `Budgets`, and each of its crawls a view of it with its own options. One loop
exchanges reports for permits and slots, for all domains that need it in one round trip: about once
a second for a domain in use, and at once when a request waits for it. In between, requests are sent
without a round trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from forager.clock import local_time, wait_for_event
from forager.db.database import Database
from forager.db.refusals import isolate_refused
from forager.errors import DatabaseUnavailable, DiskFull, ErrorKind, Retry, error_text
from forager.fetch.budgets import store
from forager.fetch.budgets.accounts import RENEW_EVERY, DomainAccount
from forager.fetch.budgets.exchange import ServerClock, SlotRequest
from forager.fetch.budgets.host_rows import HostRows
from forager.fetch.budgets.slots import Slot
from forager.fetch.budgets.store import block_domain, unblock_domain
from forager.fetch.budgets.terms import CrawlTerms, Waiter
from forager.fetch.budgets.waits import refuse, too_long
from forager.fetch.domains.store import CoveringDomain
from forager.fetch.host_history.record import HostRecorder
from forager.logs import get_logger

__all__ = ["block_domain", "unblock_domain"]

log = get_logger("budgets")

LOOK_EVERY = 0.25
"""Seconds between checks which domains need an exchange."""
IDLE_LOOK_EVERY = 60.0
"""The same while no domain is open: the first request to one wakes the loop."""
ROW_KNOWN_FOR = 15.0
"""Seconds after which the row of a host is looked up again: a nearer one may have been added."""
SHORTEST_PAUSE = 0.01
CROWD, PAUSE_IN_A_CROWD = 20, 0.1
"""With more open domains than this, exchanges are collected for longer: each has a cost."""


PAUSE_WHEN_LOCKED = 0.05
PAUSE_AFTER_ERROR = 0.5
DATABASE_GRACE = 5.0
LEAVE_WITHIN = 3.0
MOST_AT_ONCE = 1 << 30


@dataclass(slots=True)
class _Host:
    account: DomainAccount
    robots_delay: float | None
    known_until: float


class Budgets:
    """Grants a slot for every request of a process, which sends at most `at_once` at a time.

    The rate of a host is shared through the database by all processes: no two of them get the same
    slot. Requests are made through a `BudgetView`, which has the options of one crawl.
    """

    def __init__(self, database: Database, *, holder: UUID, at_once: int = MOST_AT_ONCE) -> None:
        self._database = database
        self._holder = holder
        self._clock = ServerClock()
        self._hosts: dict[str, _Host] = {}
        self._accounts: dict[int, DomainAccount] = {}
        # separate from exchanges, so that a slow lookup does not delay hosts in use
        self._rows = HostRows(database)
        # accounts that need an exchange at once; the others are checked periodically
        self._wanted: set[DomainAccount] = set()
        self._next_look = 0.0
        self._wake = asyncio.Event()
        self._exchanging = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        self._recorder = HostRecorder(database)
        self._recording: asyncio.Task[None] | None = None
        self._leaving = False
        self._free = asyncio.Semaphore(at_once)
        # requests in flight, pages that wait for their host, and requests whose host is ready but
        # that wait until this process sends fewer than `at_once`
        self.sending = 0
        self.pages_waiting = 0
        self.waiting_to_send = 0

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        self._recording = asyncio.create_task(self._recorder.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        with suppress(TimeoutError, DatabaseUnavailable, DiskFull):
            async with asyncio.timeout(LEAVE_WITHIN):
                await self._leave()

    async def acquire(
        self,
        host: str,
        terms: CrawlTerms,
        *,
        robots_delay: float | None,
        proxy_id: int | None,
        max_wait: float,
        background: bool,
    ) -> Slot:
        """Wait for the next slot and a connection of the host; see `BudgetView.acquire`."""
        known = self._hosts.get(host)
        if known is not None and robots_delay in (None, known.robots_delay):
            now = local_time()
            account = known.account
            if (
                not account.waiting
                and now < known.known_until
                and account.crawls.has_room(terms)
                and account.ready_at(now, proxy_id) <= now
                and not (background and account.background_waits)
                and not self._free.locked()
            ):
                await self._free.acquire()
                return self._take(account, now, proxy_id, terms)
        waiter = Waiter(terms, proxy_id, local_time() + max_wait, background)
        return await self._wait(host, robots_delay, waiter)

    def account_of(self, host: str) -> DomainAccount | None:
        """The account that a host was last found in, if it is open."""
        known = self._hosts.get(host)
        return None if known is None else known.account

    def leave(self, terms: CrawlTerms) -> None:
        """End the effect of the options of a crawl."""
        for account in self._accounts.values():
            account.drop(terms)

    def rooms(self, begun: Mapping[int, int]) -> dict[int, int]:
        """Pages that can be sent within a second in addition to those `begun`, by domain."""
        unknown = {domain_id: max(0, 1 - pages) for domain_id, pages in begun.items()}
        known = {
            domain_id: account.room(begun.get(domain_id, 0))
            for domain_id, account in self._accounts.items()
        }
        return unknown | known

    # --- waiting ---------------------------------------------------------------------------

    async def _wait(self, host: str, robots_delay: float | None, waiter: Waiter) -> Slot:
        account = await self._account(host, robots_delay, waiter.deadline)
        account.admit(waiter.terms)
        limit = waiter.deadline - local_time() + DATABASE_GRACE
        self.pages_waiting += not waiter.background
        try:
            with account.queued(waiter) as (turn_in_crawl, turn_of_crawl):
                async with asyncio.timeout(limit), turn_in_crawl:
                    await _wait_for_room(account, waiter.terms)
                    async with turn_of_crawl:
                        return await self._take_turn(account, host, waiter)
        except TimeoutError:
            raise too_long(account, host, waiter.proxy_id) from None
        finally:
            self.pages_waiting -= not waiter.background

    async def _take_turn(self, account: DomainAccount, host: str, waiter: Waiter) -> Slot:
        proxy_id = waiter.proxy_id
        while True:
            now = local_time()
            ready_at = account.ready_at(now, proxy_id)
            if waiter.background and account.background_waits:
                ready_at = max(ready_at, now + RENEW_EVERY)
            if not account.crawls.has_room(waiter.terms):
                # another request of the same crawl took the last connection in the meantime
                ready_at = now + RENEW_EVERY
            if ready_at <= now:
                slot = await self._send_when_possible(account, waiter)
                if slot is not None:
                    return slot
                continue
            if now < account.fresh_until:
                refuse(account, host, waiter, ready_at)
            if account.error is not None and not isinstance(account.error, DatabaseUnavailable):
                raise account.error
            if account.lacks_exchange(now, proxy_id):
                account.want_exchange()
            account.changed.clear()
            await wait_for_event(account.changed, min(ready_at - now, RENEW_EVERY))

    async def _send_when_possible(self, account: DomainAccount, waiter: Waiter) -> Slot | None:
        """Take the slot once fewer than `at_once` requests are sent; None if it has expired."""
        self.pages_waiting -= not waiter.background
        self.waiting_to_send += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting_to_send -= 1
            self.pages_waiting += not waiter.background
        now = local_time()
        if account.ready_at(now, waiter.proxy_id) <= now and account.crawls.has_room(waiter.terms):
            return self._take(account, now, waiter.proxy_id, waiter.terms)
        self._free.release()
        return None

    def _take(
        self, account: DomainAccount, now: float, proxy_id: int | None, terms: CrawlTerms
    ) -> Slot:
        self.sending += 1
        return account.take(now, proxy_id, terms)

    def _released(self) -> None:
        self.sending -= 1
        self._free.release()

    # --- which row applies -----------------------------------------------------------------

    async def _account(
        self, host: str, robots_delay: float | None, deadline: float
    ) -> DomainAccount:
        known = self._hosts.get(host)
        while known is None or local_time() >= known.known_until:
            self._open(host, await self._rows.find(host, deadline))
            known = self._hosts.get(host)
        if robots_delay is not None:
            known.robots_delay = robots_delay
            known.account.apply_robots(host, robots_delay)
        return known.account

    def _open(self, host: str, cover: CoveringDomain) -> None:
        account = self._accounts.get(cover.id)
        if account is None:
            account = self._accounts[cover.id] = DomainAccount(
                cover.id,
                cover.name,
                self._clock,
                on_wanted=self._want,
                on_released=self._released,
                recorder=self._recorder,
            )
        account.last_used = local_time()
        account.hosts.add(host)
        self._hosts[host] = _Host(account, None, local_time() + ROW_KNOWN_FOR)

    # --- exchanging ------------------------------------------------------------------------

    def _want(self, account: DomainAccount) -> None:
        self._wanted.add(account)
        self._wake.set()

    async def _run(self) -> None:
        """Exchange with the database for all domains that need it, in one round trip."""
        while not self._leaving:
            await wait_for_event(self._wake, LOOK_EVERY if self._accounts else IDLE_LOOK_EVERY)
            self._wake.clear()
            pause = SHORTEST_PAUSE
            if due := self._due():
                pause = await self._exchange_or_note(due)
            await asyncio.sleep(pause)

    def _due(self) -> list[DomainAccount]:
        now = local_time()
        due, self._wanted = self._wanted, set()
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY
            due.update(each for each in self._accounts.values() if each.exchange_at() <= now)
        return [account for account in due if self._is_open(account)]

    def _is_open(self, account: DomainAccount) -> bool:
        return self._accounts.get(account.domain_id) is account

    async def _exchange_or_note(self, accounts: Sequence[DomainAccount]) -> float:
        """Exchange; returns the seconds to wait before the next one."""
        try:
            for account, error in await isolate_refused(accounts, self._exchange):
                _note([account], error)
        except Exception as error:
            _note(accounts, error)
            return PAUSE_AFTER_ERROR
        return SHORTEST_PAUSE if len(self._accounts) < CROWD else PAUSE_IN_A_CROWD

    async def _exchange(self, accounts: Sequence[DomainAccount], *, waits: bool = False) -> None:
        """Report, renew and reserve; `waits`: also for rows that another process has locked."""
        async with self._exchanging, self._database.connection() as connection:
            if not self._clock.is_known:
                # the number of requested slots depends on the response time
                sent_at = local_time()
                said = await store.select_clock(connection)
                self._clock.observe(sent_at, local_time(), said)
            sent = [(account, self._message(account)) for account in accounts]
            sent_at = local_time()
            try:
                answer = await store.exchange(
                    connection, self._holder, [each for _, each in sent], waits=waits
                )
            except BaseException:
                for account, wanted in sent:
                    account.not_written(wanted)
                raise
            self._clock.observe(sent_at, local_time(), answer.clock)
            missing = [each.domain_id for _, each in sent if each.domain_id not in answer.given]
            locked = await store.select_existing(connection, missing) if missing else set()
        for account, wanted in sent:
            given = answer.given.get(account.domain_id)
            if given is None:
                self._not_exchanged(account, wanted, exists=account.domain_id in locked)
            elif wanted.leaves:
                account.written(wanted, sent_at)
                self._close(account)
            else:
                account.learn(wanted, given, answer.pairs.get(account.domain_id, ()), sent_at)

    def _message(self, account: DomainAccount) -> SlotRequest:
        now = local_time()
        leaves = self._leaving or account.is_idle(now)
        returned = account.take_all() if leaves else account.take_unused()
        if leaves:
            account.stop_sending()
        slots = account.slots_wanted()
        direct = slots.pop(None, 0)
        return SlotRequest(
            domain_id=account.domain_id,
            delay=account.crawls.delay,
            concurrency=account.crawls.connections,
            robots_delay=account.robots_delay,
            direct=direct,
            proxied={proxy: count for proxy, count in slots.items() if proxy is not None},
            max_wait=account.max_wait(now),
            busy=account.hold(),
            waiting=account.pages_waiting,
            returned=returned or account.unreturned,
            answers=account.take_answers(),
            slack=account.slack,
            block_for=max(0.0, account.unwritten_block - now),
            refused_under=account.unwritten_slow,
            leaves=leaves,
        )

    def _not_exchanged(self, account: DomainAccount, wanted: SlotRequest, *, exists: bool) -> None:
        """Retry if another process has locked the row; forget a deleted one."""
        account.not_written(wanted)
        if exists:
            asyncio.get_running_loop().call_later(PAUSE_WHEN_LOCKED, account.want_exchange)
            return
        self._forget(account)
        message = f"the domain {account.name} was deleted"
        _note([account], Retry(message, kind=ErrorKind.NOT_ALLOWED))

    def _close(self, account: DomainAccount) -> None:
        """Forget an account, unless a request has arrived in the meantime."""
        if account.waiting:
            account.want_exchange()
        else:
            self._forget(account)

    def _forget(self, account: DomainAccount) -> None:
        if self._is_open(account):
            del self._accounts[account.domain_id]
        for host in account.hosts:
            if (known := self._hosts.get(host)) is not None and known.account is account:
                del self._hosts[host]

    # --- leaving ---------------------------------------------------------------------------

    async def _stop(self) -> None:
        """End the loop between two exchanges if possible: a canceled one loses its connection."""
        self._leaving = True
        self._wake.set()
        if self._recording is not None:
            self._recording.cancel()
            await asyncio.gather(self._recording, return_exceptions=True)
        if self._running is not None:
            await asyncio.wait([self._running], timeout=LEAVE_WITHIN)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _leave(self) -> None:
        await self._recorder.write()
        if self._accounts:
            await self._exchange(list(self._accounts.values()), waits=True)
        async with self._database.connection() as connection:
            await store.delete_permits(connection, self._holder)


async def _wait_for_room(account: DomainAccount, terms: CrawlTerms) -> None:
    """Wait until the crawl uses fewer connections than its options allow."""
    while not account.crawls.has_room(terms):
        account.changed.clear()
        await wait_for_event(account.changed, RENEW_EVERY)


def _note(accounts: Iterable[DomainAccount], error: Exception) -> None:
    for account in accounts:
        if account.error is None:
            log.warning("budget not renewed", domain=account.name, error=error_text(error))
        account.error = error
        account.changed.set()
