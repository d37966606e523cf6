"""The budgets of hosts as one crawl sees them: with its own delay and number of connections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from forager.clock import local_time
from forager.fetch.budgets.accounts import DomainAccount
from forager.fetch.budgets.budget import Budgets
from forager.fetch.budgets.slots import Slot
from forager.fetch.budgets.terms import CrawlTerms
from forager.fetch.budgets.waits import HostWait, pace_message, wait_of


@dataclass(frozen=True, slots=True)
class HostPace:
    """When a host may be requested again, as far as this process knows."""

    next_at: float
    delay: float
    connections: int
    reason: str


class BudgetView:
    """One crawl among those that share the budgets of a process. Use it as a context manager.

    Where two crawls request the same domain, the longer of their delays applies to both, and each
    keeps its own number of connections.
    """

    def __init__(
        self, budgets: Budgets, *, delay: float | None = None, concurrency: int | None = None
    ) -> None:
        self._budgets = budgets
        self._terms = CrawlTerms(delay, concurrency)
        self._waiting: Counter[str] = Counter()
        # called with the host of each request that is about to be sent, and its pace
        self.on_slot: Callable[[str, HostPace], None] = lambda _host, _pace: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._budgets.leave(self._terms)

    async def acquire(
        self,
        host: str,
        *,
        robots_delay: float | None = None,
        proxy_id: int | None = None,
        max_wait: float = 60.0,
        background: bool = False,
    ) -> Slot:
        """Wait for the next slot and a connection of the host.

        Without a `robots_delay` the last one applies. A `background` request takes no slot and no
        connection while pages of the host wait. Raises HostThrottled if the slot is further away
        than `max_wait`, DomainInactive if the domain is disabled, and DatabaseUnavailable.
        """
        self._waiting[host] += 1
        try:
            slot = await self._budgets.acquire(
                host,
                self._terms,
                robots_delay=robots_delay,
                proxy_id=proxy_id,
                max_wait=max_wait,
                background=background,
            )
        finally:
            self._waiting[host] -= 1
            if not self._waiting[host]:
                del self._waiting[host]
        self._report(host)
        return slot

    def waits(self) -> list[HostWait]:
        """Why pages of this crawl wait, by host; empty if no host is rate-limited."""
        now = local_time()
        accounts = {self._budgets.account_of(host) for host in self._waiting}
        found = (wait_of(account, now) for account in accounts if account is not None)
        return [wait for wait in found if wait is not None]

    def _report(self, host: str) -> None:
        account = self._budgets.account_of(host)
        if account is not None:
            self.on_slot(host, self._pace(account))

    def _pace(self, account: DomainAccount) -> HostPace:
        # each proxy has its own pace at such a domain
        delay = 0.0 if account.per_proxy_only else account.delay
        return HostPace(
            next_at=max(local_time() + delay, account.blocked_until),
            delay=delay,
            connections=account.crawls.connections_of(self._terms),
            reason=pace_message(account),
        )
