"""What is known of a proxy: its health to be shown, and what is needed to use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.cost import CostUnit, ProxyCost
from forager.fetch.proxies.proxy import ProxyScheme, ProxySpec


class ProxyState(StrEnum):
    ACTIVE = "active"
    FAILING = "failing"  # off because of failures, and probed until it recovers
    DISABLED = "disabled"  # off because a person said so


@dataclass(frozen=True, slots=True)
class ProxyRecord:
    """A proxy and its health; holds no secret, so that all of it can be shown."""

    id: int
    scheme: str
    host: str
    port: int
    username: str | None
    has_password: bool
    allow_private: bool
    is_active: bool
    disabled_reason: str | None
    success_count: int
    failure_count: int
    consecutive_failures: int
    avg_response_time_ms: int | None
    last_used_at: datetime | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    last_failure_reason: str | None
    next_probe_at: datetime | None
    region: str | None
    cost_amount: Decimal | None
    cost_unit: str | None
    cost_currency: str | None
    created_at: datetime

    @property
    def cost(self) -> ProxyCost | None:
        return cost_of(self.cost_amount, self.cost_unit, self.cost_currency)

    @property
    def state(self) -> ProxyState:
        if self.is_active:
            return ProxyState.ACTIVE
        return ProxyState.DISABLED if self.next_probe_at is None else ProxyState.FAILING


@dataclass(frozen=True, slots=True)
class SealedProxy:
    """A proxy as it is stored: whoever has the key can use it."""

    id: int
    scheme: str
    host: str
    port: int
    username: str | None
    password: bytes | None = field(repr=False)
    allow_private: bool


@dataclass(frozen=True, slots=True)
class PickedProxy:
    """A proxy, ready to be used."""

    id: int
    spec: ProxySpec
    allow_private: bool = False

    @property
    def guard(self) -> GuardPolicy:
        """What its own address may be."""
        return GuardPolicy(allow_private=self.allow_private)


@dataclass(slots=True)
class Tally:
    """What happened to a proxy since it was last written down."""

    successes: int = 0
    failures: int = 0
    run: int = 0  # failures since the last success
    response_ms: float = 0.0  # of all successes together
    reason: str | None = None

    def succeed(self, response_ms: float) -> None:
        self.successes += 1
        self.run = 0
        self.response_ms += response_ms

    def fail(self, reason: str) -> None:
        self.failures += 1
        self.run += 1
        self.reason = reason

    def followed_by(self, later: Tally) -> Tally:
        return Tally(
            self.successes + later.successes,
            self.failures + later.failures,
            later.run if later.successes else self.run + later.run,
            self.response_ms + later.response_ms,
            later.reason or self.reason,
        )


def cost_of(amount: Decimal | None, unit: str | None, currency: str | None) -> ProxyCost | None:
    """What three columns say together; all or none of them are set."""
    if amount is None or unit is None or currency is None:
        return None
    return ProxyCost(amount, CostUnit(unit), currency)


def shown_address(scheme: str, host: str, port: int, username: str | None, secret: bool) -> str:
    """A proxy's URL as people may see it."""
    who = "" if username is None else f"{username}:***@" if secret else f"{username}@"
    return f"{scheme}://{who}{host}:{port}"


def spec_of(sealed: SealedProxy, password: str | None) -> ProxySpec:
    return ProxySpec(
        ProxyScheme(sealed.scheme), sealed.host, sealed.port, sealed.username, password
    )
