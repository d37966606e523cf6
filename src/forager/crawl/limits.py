"""Reasons to end a crawl before its frontier is empty."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from forager.crawl.ledger import CARRIED_OVER, CrawlState, Ledger
from forager.crawl.options import CrawlOptions
from forager.errors import ErrorKind

# a refresh whose first pages all fail, this many, is of a site that is down
SITE_IS_DOWN = 20
# fewer for network errors on the only host of a crawl: the delays between its requests grow
SITE_IS_UNREACHABLE = 5


class CrawlLimits:
    """The limits that the options of a crawl set, and that of a site that is down."""

    def __init__(self, options: CrawlOptions) -> None:
        self._options = options
        self._has_one_host = len({urlsplit(url).netloc for url in options.urls}) == 1

    def reached(self, state: CrawlState, bytes_waiting: int) -> str | None:
        """The limit that is reached; `bytes_waiting` are not in the ledger yet."""
        options, ledger, limit = self._options, state.ledger, self._options.page_limit
        if limit is not None and ledger.listed >= limit:
            return "max pages" if limit == options.max_pages else "page quota"
        fetched = ledger.bytes_fetched + bytes_waiting
        if options.max_bytes is not None and fetched >= options.max_bytes:
            return "max bytes"
        if options.max_time is not None and state.seconds >= options.max_time:
            return "max time"
        return None

    def site_is_down(self, ledger: Ledger) -> bool:
        """Every page failed so far; the links of earlier versions would lead to all the others."""
        if ledger.pages:
            return False
        reasons = ledger.reasons.get(CARRIED_OVER, Counter())
        unreachable = self._has_one_host and reasons[ErrorKind.NETWORK] == ledger.carried_over
        return ledger.carried_over >= (SITE_IS_UNREACHABLE if unreachable else SITE_IS_DOWN)
