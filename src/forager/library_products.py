"""The calls of the library that are about products."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from forager.db.cursor import Page
from forager.db.database import Database
from forager.events.event import EventRow
from forager.events.service import list_events
from forager.products.alerts.rules import NewAlert, add_alert, delete_alert, list_alerts
from forager.products.filters import Filters, PriceDirection, PriceMeasure
from forager.products.offers import ShopOffer, compare_offers
from forager.products.price_history import PriceEntry, PriceMove, largest_changes, price_history
from forager.products.product import AlertRule, ListedProduct
from forager.products.service import list_products
from forager.settings import Settings
from forager.tasks.service import Tasks
from forager.tasks.tracking import Tracked


class TrackSettings(TypedDict, total=False):
    """How to track; each is an option of `forager products track`."""

    every: timedelta
    priority: int
    popularity: float
    at: datetime
    max_retries: int
    render: str
    allow_private: bool


class ProductCalls:
    """Products: which are tracked, what was found, and when it changed."""

    _database: Database
    _settings: Settings

    async def track(self, *urls: str, **terms: Unpack[TrackSettings]) -> Tracked:
        """Keep product pages fresh; a running `forager up` or worker visits them.

        Tracking a URL again changes only the terms that are given. The answer counts URLs that are
        new, known and invalid.

            store.track("https://shop.example.org/lamp", every=timedelta(hours=6), priority=8)
        """
        return await Tasks(self._database, self._settings).track(urls, **terms)

    async def products(
        self, filters: Filters | None = None, *, cursor: str | None = None, limit: int = 20
    ) -> Page[ListedProduct]:
        """Products, newest first, a page at a time.

        `next_cursor` of a page is the `cursor` of the next one:

            page = store.products(Filters(brand="Lumina", max_price=Decimal("50")))
        """
        return await list_products(self._database, filters, cursor=cursor, limit=limit)

    async def history(
        self, product: str, *, variant: str | None = None, limit: int = 100
    ) -> list[PriceEntry]:
        """Changes of price and availability of a product, by its ID or URL; newest first.

        The first entry is the present offer. Raises NotFound for an unknown product.
        """
        page = await price_history(self._database, product, variant=variant, limit=limit)
        return page.items

    async def offers(self, which: str) -> list[ShopOffer]:
        """Offers of an article by GTIN, or by the ID or URL of one offer; cheapest first."""
        return await compare_offers(self._database, which)

    async def changes(
        self,
        since: datetime,
        filters: Filters | None = None,
        *,
        direction: PriceDirection | None = None,
        by: PriceMeasure = PriceMeasure.PERCENT,
        limit: int = 20,
    ) -> list[PriceMove]:
        """The largest price changes, compared with the price at a time.

        `by` orders them by their share of the price, or by their amount:

            yesterday = datetime.now(UTC) - timedelta(days=1)
            store.changes(yesterday, direction=PriceDirection.DROPS)
        """
        return await largest_changes(
            self._database, since, filters, direction=direction, by=by, limit=limit
        )

    async def events(
        self, *, kind: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[EventRow]:
        """What happened to products, sources and domains, newest first.

        `kind` is a name such as `product.price_changed`; raises InvalidInput for an unknown one.
        """
        return (await list_events(self._database, kind=kind, since=since, limit=limit)).items

    async def add_alert(self, rule: NewAlert) -> AlertRule:
        """Add an alert rule: offers that meet it from now on are `product.alert` events.

        Raises AlreadyThere for a rule that exists, and InvalidInput for values that do not fit.
        """
        return await add_alert(self._database, rule)

    async def alerts(self, *, cursor: str | None = None, limit: int = 100) -> Page[AlertRule]:
        """Alert rules by ID, a page at a time."""
        return await list_alerts(self._database, cursor=cursor, limit=limit)

    async def delete_alert(self, rule_id: int) -> AlertRule:
        """Delete an alert rule."""
        return await delete_alert(self._database, rule_id)
