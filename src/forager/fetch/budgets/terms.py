"""The terms on which a crawl requests pages of its hosts."""

from __future__ import annotations

from dataclasses import dataclass

from forager.extract.hosts import is_loopback

DEFAULT_DELAY = 1.0
DEFAULT_CONCURRENCY = 5


def default_delay(host: str) -> float:
    return 0.0 if is_loopback(host) else DEFAULT_DELAY


@dataclass(frozen=True, slots=True, eq=False)
class CrawlTerms:
    """The options of one crawl; None: the default. Two crawls with the same options are two."""

    delay: float | None = None
    concurrency: int | None = None

    @property
    def connections(self) -> int:
        """Connections to one domain at a time."""
        return DEFAULT_CONCURRENCY if self.concurrency is None else self.concurrency

    def delay_for(self, domain: str) -> float:
        return default_delay(domain) if self.delay is None else self.delay


@dataclass(frozen=True, slots=True)
class Waiter:
    """A request that waits for a slot until its deadline."""

    terms: CrawlTerms
    proxy_id: int | None
    deadline: float
    background: bool
