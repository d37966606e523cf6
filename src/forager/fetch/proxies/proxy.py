"""Proxies: their addresses, their health, and their price."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from ada_url import URL

from forager.errors import InvalidInput
from forager.fetch.guard import GuardPolicy

_ADDRESS_HINT = "write a proxy as http://user:password@host:port, https://... or socks5://..."


class ProxyScheme(StrEnum):
    """The protocol of a proxy."""

    HTTP = "http"
    HTTPS = "https"
    SOCKS5 = "socks5"


_DEFAULT_PORTS = {ProxyScheme.HTTP: 80, ProxyScheme.HTTPS: 443, ProxyScheme.SOCKS5: 1080}


@dataclass(frozen=True, slots=True)
class ProxySpec:
    """A proxy; it resolves the names of targets."""

    scheme: ProxyScheme
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ProxySpec:
        """Parse `scheme://user:password@host:port`; errors do not contain the password."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            scheme = ProxyScheme("socks5" if parts.scheme == "socks5h" else parts.scheme)
            port = parts.port or _DEFAULT_PORTS[scheme]
            host = _normal_host(parts.hostname or "")
        except ValueError:
            raise InvalidInput("the proxy address is not valid", hint=_ADDRESS_HINT) from None
        return cls(scheme, host, port, _decoded(parts.username), _decoded(parts.password))

    @property
    def shown(self) -> str:
        has_password = self.password is not None
        return shown_address(self.scheme, self.host, self.port, self.username, has_password)

    @property
    def address(self) -> str:
        """Scheme, host and port: safe to show and to log."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """The value of Proxy-Authorization, or None without credentials."""
        if self.username is None:
            return None
        pair = f"{self.username}:{self.password or ''}"
        return "Basic " + b64encode(pair.encode()).decode()


def _normal_host(host: str) -> str:
    # normalized, so that the guard sees 127.0.0.1 where 0x7f.1 was written
    text = f"[{host}]" if ":" in host else host
    return str(URL(f"http://{text}/").hostname)


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)


class ProxyState(StrEnum):
    """Whether a proxy is used, and why not."""

    ACTIVE = "active"
    FAILING = "failing"  # disabled after failures, and probed until it recovers
    DISABLED = "disabled"  # by hand


@dataclass(frozen=True, slots=True)
class ProxyRecord:
    """A proxy and its health, without its password."""

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
    # in a row
    failure_count: int
    total_failures: int
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
    def shown(self) -> str:
        return shown_address(self.scheme, self.host, self.port, self.username, self.has_password)

    @property
    def cost(self) -> ProxyCost | None:
        return cost_of(self.cost_amount, self.cost_unit, self.cost_currency)

    @property
    def state(self) -> ProxyState:
        if self.is_active:
            return ProxyState.ACTIVE
        return ProxyState.DISABLED if self.next_probe_at is None else ProxyState.FAILING


@dataclass(frozen=True, slots=True)
class EncryptedProxy:
    """A stored proxy with its encrypted password."""

    id: int
    scheme: str
    host: str
    port: int
    username: str | None
    password: bytes | None = field(repr=False)
    allow_private: bool


@dataclass(frozen=True, slots=True)
class PickedProxy:
    """A proxy with its decrypted password."""

    id: int
    spec: ProxySpec
    allow_private: bool = False

    @property
    def guard(self) -> GuardPolicy:
        """The guard for its own address."""
        return GuardPolicy(allow_private=self.allow_private)


@dataclass(slots=True)
class ProxyTally:
    """Counts of a proxy since they were last written."""

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

    def followed_by(self, later: ProxyTally) -> ProxyTally:
        return ProxyTally(
            self.successes + later.successes,
            self.failures + later.failures,
            later.run if later.successes else self.run + later.run,
            self.response_ms + later.response_ms,
            later.reason or self.reason,
        )


def cost_of(amount: Decimal | None, unit: str | None, currency: str | None) -> ProxyCost | None:
    """The cost of three columns; all or none of them are set."""
    if amount is None or unit is None or currency is None:
        return None
    return ProxyCost(amount, CostUnit(unit), currency)


def shown_address(scheme: str, host: str, port: int, username: str | None, secret: bool) -> str:
    """The URL of a proxy without its password."""
    who = "" if username is None else f"{username}:***@" if secret else f"{username}@"
    return f"{scheme}://{who}{host}:{port}"


DEFAULT_CURRENCY = "USD"
MAX_AMOUNT = Decimal(1_000_000)

_AMOUNT = re.compile(r"\d{1,7}(?:\.\d{1,8})?")
_CURRENCY = re.compile("[A-Z]{3}")
_HINT = "Write the price as 0.002/request or 3.50/GB."


class CostUnit(StrEnum):
    """What the price of a proxy is for."""

    REQUEST = "request"
    GB = "GB"


@dataclass(frozen=True, slots=True)
class ProxyCost:
    """An amount of money per request or per GB (10^9 bytes)."""

    amount: Decimal
    unit: CostUnit
    currency: str = DEFAULT_CURRENCY

    def __str__(self) -> str:
        plain = f"{self.amount:f}"
        short = plain.rstrip("0").rstrip(".") if "." in plain else plain
        return f"{short} {self.currency}/{self.unit}"


def parse_cost(text: str, currency: str | None = None) -> ProxyCost:
    """Parse a price such as `3.50/GB` or `3.50 EUR/GB`."""
    price, slash, unit = text.strip().partition("/")
    amount, _, own = price.strip().partition(" ")
    known = {each.value.lower(): each for each in CostUnit}
    found = known.get(unit.strip().lower())
    if not slash or found is None or not _AMOUNT.fullmatch(amount):
        raise InvalidInput(f"{text[:40]!r} is not a valid proxy price", hint=_HINT)
    cost = ProxyCost(Decimal(amount), found, (own or currency or DEFAULT_CURRENCY).upper())
    check_cost(cost)
    return cost


def check_cost(cost: ProxyCost) -> None:
    if not (cost.amount.is_finite() and 0 <= cost.amount <= MAX_AMOUNT):
        raise InvalidInput(f"a proxy price must be 0 to {MAX_AMOUNT:,} per unit", hint=_HINT)
    if not _CURRENCY.fullmatch(cost.currency):
        raise InvalidInput(
            f"{cost.currency[:20]!r} is not a currency code",
            hint="Use three letters, such as EUR or USD.",
        )
