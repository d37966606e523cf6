"""The terms on which a crawl requests pages of its hosts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from forager.extract.hosts import is_loopback

DEFAULT_DELAY = 1.0
DEFAULT_CONCURRENCY = 5


def default_delay(host: str) -> float:
    """Seconds between requests to a host without other settings."""
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
        """Seconds between requests that the crawl asks for."""
        return default_delay(domain) if self.delay is None else self.delay


class DomainCrawls:
    """The crawls that request pages of a domain in this process, and their connections."""

    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._open: Counter[CrawlTerms] = Counter()
        # a setting of the domain, which overrides the options of crawls
        self.limit: int | None = None
        # the longest delay and the most connections that the crawls ask for
        self.delay = default_delay(domain)
        self.connections = DEFAULT_CONCURRENCY

    def admit(self, terms: CrawlTerms) -> bool:
        """Apply the options of a crawl; whether they ask for a longer delay."""
        if terms in self._open:
            return False
        self._open[terms] = 0
        delay = self.delay if len(self._open) > 1 else 0.0
        self._combine()
        return self.delay > delay

    def drop(self, terms: CrawlTerms) -> bool:
        """Forget the options of a crawl; whether it was here."""
        if self._open.pop(terms, None) is None:
            return False
        self._combine()
        return True

    def _combine(self) -> None:
        # without a crawl, the options of the last one stay
        if self._open:
            self.delay = max(terms.delay_for(self._domain) for terms in self._open)
            self.connections = max(terms.connections for terms in self._open)

    def has_room(self, terms: CrawlTerms) -> bool:
        """Whether a crawl that was admitted may open another connection."""
        return terms in self._open and self._open[terms] < self.connections_of(terms)

    def connections_of(self, terms: CrawlTerms) -> int:
        """Connections that a crawl may open; a setting of the domain overrides its own limit."""
        return terms.connections if self.limit is None else self.limit

    def connected(self, terms: CrawlTerms) -> None:
        """Count a connection of a crawl that was admitted."""
        self._open[terms] += 1

    def disconnected(self, terms: CrawlTerms) -> None:
        """Count a connection less, unless the crawl has ended."""
        if terms in self._open:
            self._open[terms] -= 1


@dataclass(frozen=True, slots=True)
class Waiter:
    """A request that waits for a slot until its deadline."""

    terms: CrawlTerms
    proxy_id: int | None
    deadline: float
    background: bool
