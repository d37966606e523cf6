"""Fetching: domains with their budgets, robots.txt files, proxies."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Interval,
    Numeric,
    SmallInteger,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base, RowNumber

# a short name, as people say it and as it can stand in the name of a queue
REGION = "^[a-z0-9-]{1,32}$"


class Domain(Base):
    """A host and how it may be treated. Unset means: what the crawl asks for, or the default.

    The columns below the line change with every request and are in no index.
    """

    __tablename__ = "domains"
    __table_args__ = (
        CheckConstraint("domain_name = lower(domain_name)", name="domain_name"),
        # an upper limit refuses NaN and infinity as well: both are larger than any number
        CheckConstraint(
            "crawl_delay_seconds >= 0 AND crawl_delay_seconds < 10000000",
            name="crawl_delay_seconds",
        ),
        CheckConstraint("slow_delay >= 0 AND slow_delay <= 300", name="slow_delay"),
        CheckConstraint("error_share >= 0 AND error_share <= 1", name="error_share"),
        CheckConstraint(
            "isfinite(next_slot_at) AND isfinite(blocked_until) AND isfinite(slowed_at)",
            name="times",
        ),
        CheckConstraint("max_concurrent_requests >= 1", name="max_concurrent_requests"),
        CheckConstraint("crawl_frequency > interval '0'", name="crawl_frequency"),
        CheckConstraint(
            "min_frequency > interval '0' AND max_frequency >= min_frequency", name="frequencies"
        ),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency"),
        CheckConstraint("task_hold IN ('paused', 'stopped')", name="task_hold"),
        CheckConstraint(f"region ~ '{REGION}'", name="region"),
        Index("domains_domain_name_key", "domain_name", unique=True),
        Index("domains_is_active_idx", "is_active"),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[RowNumber]
    domain_name: Mapped[str]
    base_url: Mapped[str]
    crawl_delay_seconds: Mapped[Decimal | None] = mapped_column(Numeric(10, 3))
    max_concurrent_requests: Mapped[int | None]
    # count per (domain, proxy) pair alone, not for the domain in total
    per_proxy_only: Mapped[bool] = mapped_column(server_default=text("false"))
    is_active: Mapped[bool] = mapped_column(server_default=text("true"))
    # --- how its tasks are treated; unset means: the setting
    crawl_frequency: Mapped[timedelta | None] = mapped_column(Interval)
    adaptive: Mapped[bool | None]
    min_frequency: Mapped[timedelta | None] = mapped_column(Interval)
    max_frequency: Mapped[timedelta | None] = mapped_column(Interval)
    use_proxies: Mapped[bool | None]
    # whether a person allowed its tasks to reach private addresses
    allow_private: Mapped[bool] = mapped_column(server_default=text("false"))
    # the currency its prices must have
    currency: Mapped[str | None]
    task_hold: Mapped[str | None]
    # whose workers alone ask it for anything; None: all of them
    region: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # -------------------------------------------------------------------------------------------
    next_slot_at: Mapped[datetime] = mapped_column(server_default=NOW)
    blocked_until: Mapped[datetime | None]
    slow_delay: Mapped[float] = mapped_column(Float, server_default=text("0"))
    # when the extra delay last grew, was confirmed, or halved with time
    slowed_at: Mapped[datetime] = mapped_column(server_default=NOW)
    # moving average: which part of the last answers were errors of the server or timeouts
    error_share: Mapped[float] = mapped_column(Float, server_default=text("0"))


class DomainPermit(Base):
    """Connections a runner may have open to a domain; gone when not renewed."""

    __tablename__ = "domain_permits"

    domain_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("domains.id", ondelete="CASCADE"), primary_key=True
    )
    holder: Mapped[UUID] = mapped_column(primary_key=True)
    permits: Mapped[int]
    # connections its crawl was started with: the limit of a domain that has none of its own
    asked: Mapped[int]
    # pages that wait for a slot or a connection, and slots that were asked for and not given
    waiting: Mapped[int] = mapped_column(server_default=text("0"))
    wanted: Mapped[int] = mapped_column(server_default=text("0"))
    # the runner whose last reservation is oldest comes first
    last_slot_at: Mapped[datetime | None]
    expires_at: Mapped[datetime]


class RobotsFile(Base):
    """A host's robots.txt as it was answered; the origin is scheme, host and port."""

    __tablename__ = "robots_files"

    origin: Mapped[str] = mapped_column(primary_key=True)
    # 0: the host could not be reached at all
    status: Mapped[int] = mapped_column(SmallInteger)
    body: Mapped[bytes]
    fetched_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class Proxy(Base):
    """A proxy and its health. Counters are in no index."""

    __tablename__ = "proxies"
    __table_args__ = (
        CheckConstraint("proxy_protocol IN ('http', 'https', 'socks5')", name="proxy_protocol"),
        CheckConstraint("proxy_port BETWEEN 1 AND 65535", name="proxy_port"),
        CheckConstraint(f"region ~ '{REGION}'", name="region"),
        CheckConstraint("cost_amount >= 0", name="cost_amount"),
        CheckConstraint("cost_unit IN ('request', 'GB', 'month')", name="cost_unit"),
        CheckConstraint("cost_currency ~ '^[A-Z]{3}$'", name="cost_currency"),
        CheckConstraint("num_nulls(cost_amount, cost_unit, cost_currency) IN (0, 3)", name="cost"),
        Index(
            "proxies_address_key",
            "proxy_protocol",
            "proxy_url",
            "proxy_port",
            text("coalesce(proxy_username, '')"),
            unique=True,
        ),
        Index("proxies_is_active_idx", "is_active"),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[RowNumber]
    proxy_url: Mapped[str]
    proxy_port: Mapped[int]
    proxy_protocol: Mapped[str] = mapped_column(server_default="http")
    proxy_username: Mapped[str | None]
    # encrypted with the installation's key
    proxy_password: Mapped[bytes | None]
    is_active: Mapped[bool] = mapped_column(server_default=text("true"))
    # None while a person wants it used; else why it is off
    disabled_reason: Mapped[str | None]
    # whether a person allowed it to be at a private address
    allow_private: Mapped[bool] = mapped_column(server_default=text("false"))
    failure_count: Mapped[int] = mapped_column(server_default=text("0"))
    success_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    consecutive_failures: Mapped[int] = mapped_column(server_default=text("0"))
    last_failure_reason: Mapped[str | None]
    # set while failures keep it off: when to look whether it has recovered
    next_probe_at: Mapped[datetime | None]
    # probes since the last success of a real request; each one waits longer
    probe_attempts: Mapped[int] = mapped_column(server_default=text("0"))
    last_used_at: Mapped[datetime | None]
    last_success_at: Mapped[datetime | None]
    last_failure_at: Mapped[datetime | None]
    avg_response_time_ms: Mapped[int | None]
    # whose workers alone go through it; None: all of them
    region: Mapped[str | None]
    # what it costs, for each of its unit
    cost_amount: Mapped[Decimal | None] = mapped_column(Numeric(18, 8))
    cost_unit: Mapped[str | None]
    cost_currency: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=NOW)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ProxySlot(Base):
    """The budget of one (domain, proxy) pair."""

    __tablename__ = "proxy_slots"
    __table_args__ = (
        CheckConstraint("isfinite(next_slot_at)", name="next_slot_at"),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    domain_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("domains.id", ondelete="CASCADE"), primary_key=True
    )
    proxy_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("proxies.id", ondelete="CASCADE"), primary_key=True
    )
    next_slot_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ProxyUsage(Base):
    """What one domain sent through one proxy on one day, in UTC.

    The columns below the line change every few seconds and are in no index.
    """

    __tablename__ = "proxy_usage"
    __table_args__ = (
        Index("proxy_usage_key", "day", "domain_name", "proxy_id", unique=True),
        Index("proxy_usage_proxy_idx", "proxy_id"),
        {"postgresql_with": {"fillfactor": "70"}},
    )

    id: Mapped[RowNumber]
    day: Mapped[date]
    # of the domain that applied, or the host where none did
    domain_name: Mapped[str]
    proxy_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("proxies.id", ondelete="CASCADE"))
    # -------------------------------------------------------------------------------------------
    requests: Mapped[int] = mapped_column(BigInteger)
    bytes: Mapped[int] = mapped_column(BigInteger)
    updated_at: Mapped[datetime] = mapped_column(server_default=NOW)
