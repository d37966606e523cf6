"""The price template of a domain: where its pages show their price, as learned from visits.

A path is learned when pages with different prices agree on it. If their structured data states a
list price that they show struck through, the visible price decides from then on. The template is
remembered, and is dropped when pages whose structured data states a price stop showing it there.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.errors import DatabaseUnavailable
from forager.extract.product.places import DEAL, LearnedPlace
from forager.products.store import templates as store
from forager.products.store.templates import PriceTemplate, ShownPrice

__all__ = ["PriceTemplate"]

# recent pages that decide about a path, and pages that are searched between two updates
WINDOW = 20
MIN_PAGES = 3
MIN_SHARE = 0.75
# a known path is kept as long as this share of the pages agrees with it
KEPT_SHARE = 0.5
# distinct prices: one price could be shown anywhere
MIN_PRICES = 2
LOOK_EVERY = 600.0
# after an update, while pages show deals that no template explains
LOOK_AGAIN = 5.0
MAX_DOMAINS = 100_000


def decide_template(
    shown: Sequence[ShownPrice], known: PriceTemplate | None = None
) -> PriceTemplate | None:
    """The template that recent pages of a domain support; newest first."""
    if known is not None and _still_holds(known, shown):
        return PriceTemplate(known.path, known.shown_wins or _wins(known.path, shown))
    votes = Counter(each.place for each in shown if each.place)
    for path, count in votes.most_common(1):
        prices = {each.price for each in shown if each.place == path}
        if count >= max(MIN_PAGES, MIN_SHARE * len(shown)) and len(prices) >= MIN_PRICES:
            return PriceTemplate(path, _wins(path, shown))
    return None


def _still_holds(known: PriceTemplate, shown: Sequence[ShownPrice]) -> bool:
    """Whether recent pages still show the price at the known path; without any, nothing changed."""
    # pages of a changed layout decide at once, and do not wait for the older ones to leave
    for pages in (shown, shown[:MIN_PAGES]):
        agreeing = sum(each.place == known.path for each in pages)
        if pages and agreeing < KEPT_SHARE * len(pages) and len(pages) >= 2:
            return False
    return True


def _wins(path: str, shown: Sequence[ShownPrice]) -> bool:
    """Whether several pages show another price at the path than their data states."""
    deals = {each.price for each in shown if each.place == path and each.origin == DEAL}
    count = sum(each.place == path and each.origin == DEAL for each in shown)
    return count >= MIN_PAGES and len(deals) >= MIN_PRICES


async def update_template(connection: Connection, domain_id: int) -> PriceTemplate | None:
    """Check the template of a domain against its latest visits, and remember the decision."""
    known = await store.select_template(connection, domain_id)
    shown = await store.select_shown_prices(connection, domain_id, limit=WINDOW)
    template = decide_template(shown, known)
    if template is not None:
        await store.save_template(connection, domain_id, template)
    elif known is not None:
        await store.delete_template(connection, domain_id)
    return template


async def find_template(database: Database, domain_id: int) -> PriceTemplate | None:
    """The remembered decision for a domain, and when it was made and checked."""
    return await database.run(store.select_template, domain_id)


async def known_place(connection: Connection, domain_id: int) -> LearnedPlace:
    """The remembered decision for a domain, without another check."""
    known = await store.select_template(connection, domain_id)
    return LearnedPlace(known.path, shown_wins=known.shown_wins) if known else LearnedPlace()


class LearnedPlaces:
    """Cached places of the most recently used domains."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[int, tuple[float, LearnedPlace, int]] = OrderedDict()

    async def place_in(self, domain_id: int) -> LearnedPlace:
        nothing = (float("-inf"), LearnedPlace(), 0)
        until, place, searches = self._known.pop(domain_id, nothing)
        is_time = until <= local_time()
        # pages that are read meanwhile use the known path
        self._keep(domain_id, local_time() + LOOK_EVERY if is_time else until, place, searches - 1)
        if is_time:
            try:
                async with self._database.transaction() as connection:
                    found = await update_template(connection, domain_id)
            except DatabaseUnavailable:  # the page can be read without it
                return place
            place = LearnedPlace(found.path, shown_wins=found.shown_wins) if found else nothing[1]
            searches = 0 if found else WINDOW
            self._keep(domain_id, local_time() + LOOK_EVERY, place, searches - 1)
        return LearnedPlace(place.path, searches > 0, place.shown_wins)

    def reconsider(self, domain_id: int) -> None:
        """Check the template soon: a page shows another price than its data states.

        Pages that are read meanwhile use the known path.
        """
        known = self._known.get(domain_id)
        if known is not None and not known[1].shown_wins:
            until, place, searches = known
            soon = until - LOOK_EVERY + LOOK_AGAIN
            self._known[domain_id] = (min(until, max(soon, local_time())), place, searches)

    def _keep(self, domain_id: int, until: float, place: LearnedPlace, searches: int) -> None:
        self._known[domain_id] = (until, place, searches)
        if len(self._known) > MAX_DOMAINS:
            self._known.popitem(last=False)
