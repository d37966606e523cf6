"""Budgets of tests."""

from __future__ import annotations

from typing import Any, Self
from uuid import uuid4

from forager.db.database import Database
from forager.fetch.budgets.budget import MOST_AT_ONCE, Budgets
from forager.fetch.budgets.view import BudgetView


class CrawlBudgets(BudgetView):
    """The budgets of a process with one crawl: the view, and behind it everything else."""

    def __init__(
        self,
        database: Database,
        *,
        delay: float | None,
        concurrency: int | None = None,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        budgets = Budgets(database, holder=uuid4(), at_once=at_once)
        super().__init__(budgets, delay=delay, concurrency=concurrency)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._budgets, name)

    async def __aenter__(self) -> Self:
        await self._budgets.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._budgets.__aexit__()


async def renew(budgets: CrawlBudgets, host: str) -> None:
    """Exchange with the database now, without waiting for the loop."""
    account = budgets.account_of(host)
    if account is not None:
        await budgets._exchange([account], waits=True)
        if account.error is not None:
            raise account.error
