"""A domain: its settings and its current state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Domain:
    """Settings (None: not set) and the current state."""

    id: int
    domain_name: str
    base_url: str
    crawl_delay_seconds: float | None
    max_concurrent_requests: int | None
    per_proxy_only: bool
    proxy_rate: float | None
    is_active: bool
    # of its tasks; intervals in seconds
    crawl_frequency: float | None
    adaptive: bool | None
    min_frequency: float | None
    max_frequency: float | None
    use_proxies: bool | None
    allow_private: bool
    currency: str | None
    task_hold: str | None
    # the shortest delay while the host is slowed down by a user; None: it is not
    traffic_delay: float | None
    region: str | None
    # which pages are rendered, and patterns of URLs that always are
    render: str | None
    render_urls: list[str]
    created_at: datetime
    updated_at: datetime
    blocked_until: datetime | None  # None if it has passed
    slow_delay: float
    next_slot_at: datetime | None
    runners: int
    connections: int
