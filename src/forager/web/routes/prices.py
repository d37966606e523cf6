"""Price changes: the largest drops and rises of a period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from forager.errors import InvalidInput
from forager.products.filters import PriceDirection, PriceMeasure
from forager.products.lookup import thumbnails
from forager.products.price_history import PriceMove, largest_changes
from forager.web.page import WebPage, cached, new_router, page
from forager.web.routes.products import filters_of
from forager.web.visit import ReaderVisit, WebVisit

router = new_router()

LIMIT = 50
# in days
PERIODS = {1: "24 hours", 7: "7 days", 30: "30 days", 90: "90 days"}
DEFAULT_PERIOD = 7
DIRECTIONS = {"drops": "Drops", "rises": "Rises"}
MEASURES = {"percent": "percent", "amount": "amount"}
NARROWED = ("domain", "category", "brand", "currency")


@page(router, "/prices")
async def list_changes(visit: ReaderVisit) -> WebPage:
    form = visit.asked
    direction = PriceDirection("rises" if form.text("direction") == "rises" else "drops")
    by = PriceMeasure("amount" if form.text("by") == "amount" else "percent")
    wanted = form.text("days")
    days = next((each for each in PERIODS if str(each) == wanted), DEFAULT_PERIOD)
    moves: list[PriceMove] = []
    problem = None
    try:
        moves = (await cached(visit, lambda: _moves(visit, direction, by, days))).answer
    except InvalidInput as error:
        problem = error
    return WebPage(
        "prices.html",
        moves=moves,
        thumbnails=await thumbnails(visit.database, [each.product_id for each in moves]),
        problem=problem,
        days=days,
        directions=[
            (visit.with_query(direction=value), name, value == direction, None)
            for value, name in DIRECTIONS.items()
        ],
        direction=direction,
        by=by,
        periods=[(str(each), name) for each, name in PERIODS.items()],
        measures=list(MEASURES.items()),
        limit=LIMIT,
        # amounts in different currencies cannot be compared
        is_mixed=by is PriceMeasure.AMOUNT and len({each.currency for each in moves}) > 1,
        is_narrowed=bool(_narrowed(visit)),
        alert_url=_alert_url(visit, days),
        export=urlencode(_narrowed(visit) | {"content": "changes", "days": str(days)}),
    )


async def _moves(
    visit: WebVisit, direction: PriceDirection, by: PriceMeasure, days: int
) -> list[PriceMove]:
    since, wanted = datetime.now(UTC) - timedelta(days=days), filters_of(visit.asked)
    return await largest_changes(
        visit.database, since, wanted, direction=direction, by=by, limit=LIMIT
    )


def _alert_url(visit: WebVisit, days: int) -> str:
    """The form of a rule for the products that the page is narrowed to."""
    rule = {"kind": "price_drop", "percent": "10", "days": str(days), **_narrowed(visit)}
    return f"/alerts?{urlencode(rule)}"


def _narrowed(visit: WebVisit) -> dict[str, str]:
    return {name: text for name in NARROWED if (text := visit.asked.text(name))}
