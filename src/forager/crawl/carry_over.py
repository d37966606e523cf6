"""Carrying pages over: a page that fails for a while keeps its last good version."""

from __future__ import annotations

from dataclasses import dataclass, replace

from forager.crawl.options import CrawlOptions
from forager.crawl.pages import Pages
from forager.crawl.settlement import Outcome, Settlement
from forager.documents.page import PreviousPage
from forager.settings import Settings

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class CarryOverLimits:
    """In how many refreshes in a row, and for how many days, a page may fail before it goes."""

    refreshes: int
    days: float

    @classmethod
    def of(cls, options: CrawlOptions, settings: Settings) -> CarryOverLimits:
        refreshes, days = options.carry_over, options.carry_over_days
        return cls(
            settings.carry_over_refreshes if refreshes is None else refreshes,
            settings.carry_over_days if days is None else days,
        )

    def allow(self, page: PreviousPage) -> bool:
        return page.carried_times < self.refreshes and page.carried_seconds < self.days * DAY


class CarryOver:
    """Decides which failed pages stay in the new generation. Stores nothing."""

    def __init__(self, pages: Pages, limits: CarryOverLimits) -> None:
        self._pages = pages
        self._limits = limits

    async def apply(self, settled: Settlement) -> Settlement:
        """A temporary failure of a published page, with what is known of the page from before."""
        if settled.outcome is not Outcome.FAILED or not settled.temporary:
            return settled
        page = await self._pages.previous(settled.entry.key)
        if page is None:
            return settled
        # also of a page that goes: the rest of the site may be found through it alone
        links = await self._pages.links_before(page, settled.entry.depth)
        if not self._limits.allow(page):
            return replace(settled, links=links, detail=f"{settled.detail}; {_dropped(page)}")
        return replace(
            settled,
            links=links,
            previous=page,
            content_hash=page.content_hash,
            carried_over=True,
            detail=f"{settled.detail}; {self._carried(page)}",
        )

    def _carried(self, page: PreviousPage) -> str:
        number = f"refresh {page.carried_times + 1} of {self._limits.refreshes}"
        return f"its version of {page.fetched_at:%Y-%m-%d %H:%M} UTC is carried over ({number})"


def _dropped(page: PreviousPage) -> str:
    if not page.carried_times:
        return "it is not carried over"
    days = page.carried_seconds / DAY
    return f"it was carried over {page.carried_times} times in {days:.1f} days, and is dropped"
