"""Budgets of tests."""

from __future__ import annotations

from forager.fetch.budgets.budget import Budgets


async def renew(budgets: Budgets, host: str) -> None:
    """Exchange with the database now, without waiting for the loop."""
    known = budgets._hosts.get(host)
    if known is not None:
        await budgets._exchange([known.account], waits=True)
        if known.account.trouble is not None:
            raise known.account.trouble
