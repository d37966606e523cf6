"""What requests to a host wait for, in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from forager.fetch.budgets.accounts import DomainAccount

WORTH_SAYING = 1.0
"""Shorter waits for the next slot are the usual pace of a crawl."""


@dataclass(frozen=True, slots=True)
class HostWait:
    """Why requests wait, and for how many seconds if that is known."""

    reason: str
    seconds: float | None = None


def wait_of(account: DomainAccount, now: float) -> HostWait | None:
    """What the pages of an account wait for; None if they go as fast as they may."""
    if not account.pages_waiting:
        return None
    if account.blocked_until > now:
        reason = f"rate-limited by {account.name} (Retry-After)"
        return HostWait(reason, account.blocked_until - now)
    if account.is_starved:
        return HostWait(f"all connections to {account.name} are used by other jobs")
    if account.in_use >= account.permits > 0:
        busy = f"{account.in_use} of {account.permits} connections to {account.name} busy"
        return HostWait(busy)
    return _wait_for_slot(account, now)


def _wait_for_slot(account: DomainAccount, now: float) -> HostWait | None:
    ready_at = account.ready_at(now, None)
    until = account.resting_until(None) if ready_at == inf else ready_at
    if until - now < WORTH_SAYING:
        return None
    slowed = f"slowed down by {account.slow_delay:.3g} s because its answers failed"
    pace = slowed if account.slow_delay > 0 else f"one request in {account.delay:.3g} s"
    return HostWait(f"rate-limited by {account.name} ({pace})", until - now)
