"""Why requests to a host wait, and when they are refused instead."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from forager.clock import local_time
from forager.errors import ErrorKind, RotateProxy
from forager.fetch.budgets.accounts import DomainAccount
from forager.fetch.budgets.slots import DomainInactive, HostThrottled
from forager.fetch.budgets.terms import Waiter

WORTH_SAYING = 1.0
"""Shorter waits for the next slot are the usual pace of a crawl."""


@dataclass(frozen=True, slots=True)
class HostWait:
    """Why requests wait, and for how long if that is known."""

    reason: str
    seconds: float | None = None


def wait_of(account: DomainAccount, now: float) -> HostWait | None:
    """Why the pages of an account wait; None if they do not."""
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
    until = account.throttled_until(None) if ready_at == inf else ready_at
    if until - now < WORTH_SAYING:
        return None
    return HostWait(pace_message(account), until - now)


def pace_message(account: DomainAccount) -> str:
    """Why the next request to the domain has to wait."""
    slowed = f"slowed down by {account.slow_delay:.3g} s because its answers failed"
    pace = slowed if account.slow_delay > 0 else f"one request every {account.delay:.3g} s"
    return f"rate-limited by {account.name} ({pace})"


def refuse(account: DomainAccount, host: str, waiter: Waiter, ready_at: float) -> None:
    """Raise an error if no slot is available before the deadline."""
    proxy_id, deadline = waiter.proxy_id, waiter.deadline
    if not account.is_active:
        raise DomainInactive(account.name)
    if proxy_id in account.unknown_proxies:
        raise RotateProxy("the proxy was removed", kind=ErrorKind.NOT_ALLOWED)
    until = account.throttled_until(proxy_id)
    if ready_at != inf:
        until = max(until, ready_at)
    now = local_time()
    if until > deadline or now >= deadline:
        raise HostThrottled(host, max(0.0, until - now), _reason(account, now))


def too_long(account: DomainAccount, host: str, proxy_id: int | None) -> Exception:
    """The error of a request that has waited until its deadline."""
    if account.error is not None:
        return account.error
    now = local_time()
    seconds = max(account.throttled_until(proxy_id) - now, account.delay)
    return HostThrottled(host, seconds, _reason(account, now))


def _reason(account: DomainAccount, now: float) -> str:
    if account.blocked_until > now:
        return "the host asked to be left alone (Retry-After)"
    if account.in_use >= account.permits:
        return "all its connections are in use"
    if account.slow_delay > 0:
        return f"it is slowed down to one request every {account.delay:g} s"
    return f"one request is allowed in {account.delay:g} s"
