"""Where pages of a domain show their price, as learned from its recent extractions.

A path is used when pages with different prices agree on it, and is dropped when pages whose
structured data states a price stop showing it there. Every worker reads the same extractions, so
that all of them use the same path.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from forager.clock import local_time
from forager.db.database import Database
from forager.errors import DatabaseUnavailable
from forager.extract.product.places import LearnedPlace
from forager.products.store.products import ShownPrice, select_shown_prices

# recent pages that decide about a path, and pages that are searched between two updates
WINDOW = 20
MIN_PAGES = 3
MIN_SHARE = 0.75
# distinct prices: one price could be shown anywhere
MIN_PRICES = 2
LOOK_EVERY = 600.0
MAX_DOMAINS = 100_000


def learned_path(shown: Sequence[ShownPrice]) -> str | None:
    votes = Counter(each.place for each in shown if each.place)
    for path, count in votes.most_common(1):
        prices = {each.price for each in shown if each.place == path}
        if count >= max(MIN_PAGES, MIN_SHARE * len(shown)) and len(prices) >= MIN_PRICES:
            return path
    return None


class LearnedPlaces:
    """Cached places of the most recently used domains."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[int, tuple[float, str | None, int]] = OrderedDict()

    async def place_in(self, domain_id: int) -> LearnedPlace:
        until, path, searches = self._known.pop(domain_id, (float("-inf"), None, 0))
        is_time = until <= local_time()
        # pages that are read meanwhile use the known path
        self._keep(domain_id, local_time() + LOOK_EVERY if is_time else until, path, searches - 1)
        if is_time:
            try:
                shown = await self._database.run(select_shown_prices, domain_id, limit=WINDOW)
            except DatabaseUnavailable:  # the page can be read without it
                return LearnedPlace(path)
            path = learned_path(shown)
            searches = 0 if path else WINDOW
            self._keep(domain_id, local_time() + LOOK_EVERY, path, searches - 1)
        return LearnedPlace(path, search=searches > 0)

    def _keep(self, domain_id: int, until: float, path: str | None, searches: int) -> None:
        self._known[domain_id] = (until, path, searches)
        if len(self._known) > MAX_DOMAINS:
            self._known.popitem(last=False)
