"""The overview: what runs, how fast, what is left, and what needs somebody."""

from __future__ import annotations

from forager.crawl.pace import Pace
from forager.web.charts import Series
from forager.web.overview import MINUTES, load_overview
from forager.web.page import Page, new_router, page
from forager.web.visit import Reads

router = new_router()

TICKS = ("60 min ago", "40", "20", "now")
NAMES = [f"{ago} min ago" if ago else "this minute" for ago in reversed(range(MINUTES))]


@page(router, "/")
async def overview(visit: Reads) -> Page:
    found = await load_overview(visit)
    if found.is_new:
        return Page("first_run.html")
    return Page(
        "overview.html",
        {
            "overview": found,
            "rate": _rate(found.pace),
            "backlog": [Series("unfinished jobs", found.history.active, "b")],
            "ticks": TICKS,
            "names": NAMES,
        },
    )


def _rate(pace: Pace) -> list[Series]:
    lines = [Series("settled", pace.settled, "a")]
    return [*lines, Series("failed", pace.failed, "d")] if any(pace.failed) else lines
