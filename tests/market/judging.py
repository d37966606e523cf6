"""Whether a market kept its promises: histories, events, requests and deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby, pairwise

from market.shops import Shop, Template
from market.simulation import DROP, LATE, OUTAGE, Market
from webhooks.receiver import Got

Seen = tuple[str, str]

# templates whose price cannot be read for some rounds
WITHOUT_PRICE = {Template.EMPTY, Template.RAISING, Template.HANGING}


async def histories(market: Market) -> dict[str, list[Seen]]:
    rows = await market.tasks.sql(
        """
        SELECT p.url, h.price, h.availability
          FROM price_history h JOIN products p ON p.id = h.product_id
         ORDER BY h.recorded_at, h.id
        """
    )
    found: dict[str, list[Seen]] = {}
    for url, price, availability in rows:
        found.setdefault(url, []).append((f"{price:.2f}", availability))
    return found


async def check_market(market: Market) -> Counter[str]:
    """Every promise at the end; the number of events by kind."""
    expected: Counter[str] = Counter()
    await _check_events_of_late_rollout(market)
    for url, history in (await histories(market)).items():
        if not url.startswith(f"http://{market.all[LATE].host}/"):
            _count_changes(history, expected)
    await market.correct_histories()
    known = await histories(market)
    for shop in market.all:
        for name in shop.products:
            _check_history(shop, name, known.pop(shop.url(name)))
    assert known == {}
    rows = await market.tasks.sql(
        """
        SELECT e.id, e.kind, d.domain_name FROM catalog_events e
          LEFT JOIN domains d ON d.id = e.domain_id
        """
    )
    events = Counter(kind for _, kind, domain in rows if domain != market.all[LATE].host)
    # pages that showed something else were withheld, and nothing of them is in a history
    del events["product.replaced"]
    assert {kind: n for kind, n in events.items() if kind.startswith("product.")} == expected
    _check_deliveries(market, {id_ for id_, *_ in rows})
    await _check_requests(market)
    return events


async def _check_events_of_late_rollout(market: Market) -> None:
    """The rollout of a parser is another reading, and no price change that triggers an alert."""
    rows = await market.tasks.sql(
        """
        SELECT e.kind, (e.payload ->> 'new')::numeric / (e.payload ->> 'old')::numeric
          FROM catalog_events e JOIN domains d ON d.id = e.domain_id
         WHERE d.domain_name = %s AND e.payload ? 'old' AND e.payload ->> 'percent' IS NOT NULL
           AND e.kind <> 'product.alert'
        """,
        market.all[LATE].host,
    )
    assert sum(kind == "product.reread" for kind, _ in rows) == len(market.all[LATE].products)


async def _check_requests(market: Market) -> None:
    """A client that repeats requests by itself sends more of them than there are attempts."""
    shop = market.all[OUTAGE]
    [(attempts,)] = await market.tasks.sql(
        """
        SELECT count(*) FROM task_attempts a JOIN crawl_tasks t ON t.id = a.task_id
          JOIN domains d ON d.id = t.domain_id
         WHERE d.domain_name = %s AND a.stage = 'download'
        """,
        shop.host,
    )
    lost = market.kills * len(shop.products)
    assert shop.pages_requested <= attempts + lost, "requests without an attempt"
    waiting = await market.tasks.sql("SELECT count(*) FROM crawl_tasks WHERE needs_browser")
    assert waiting == [(0,)], "pages wait for a browser after empty answers"


def _check_history(shop: Shop, name: str, history: list[Seen]) -> None:
    """No offer that the shop did not show, none twice in a row, and at last the current one."""
    url = shop.url(name)
    assert all(a != b for a, b in pairwise(history)), url
    withdrawn = [(price, "discontinued") for price, _ in history]
    if name in shop.gone:
        assert history[-1] in withdrawn, f"{url} is gone: {history}"
        history = history[:-1]
    else:
        assert history[-1] == shop.products[name].shown, f"{url}: {history}"
    served = shop.served[name]
    if shop.template not in WITHOUT_PRICE:
        missed = [offer for offer in shop.lasting[name] if offer not in history]
        assert not missed, f"{url}: {missed} lasted two visits and is not in {history}"
    if shop.template in WITHOUT_PRICE:  # beside a price that stays as it was, the stock may change
        shown = all(
            _is_in_order(*columns)
            for columns in zip(zip(*history, strict=True), zip(*served, strict=True), strict=True)
        )
    else:
        shown = _is_in_order(history, served)
    assert shown, f"{url}: {history} of {served}"


def _is_in_order(found: Sequence[object], served: Sequence[object]) -> bool:
    """Whether all that was found was served, in this order; repeated values count once."""
    rest = iter(served)
    return all(value in rest for value, _ in groupby(found))


def _count_changes(history: list[Seen], expected: Counter[str]) -> None:
    expected["product.added"] += 1
    for (old, before), (new, now) in pairwise(history):
        if old != new:
            expected["product.price_changed"] += 1
        if before != now:
            expected["product.availability_changed"] += 1
        if Decimal(new) <= Decimal(old) * (1 - DROP / 100):
            expected["product.alert"] += 1
        if before != "in_stock" and now == "in_stock":
            expected["product.alert"] += 1


def _check_deliveries(market: Market, events: set[int]) -> None:
    """Every event was taken exactly once, however often it was refused."""
    attempts = Counter(got.json["id"] for got in market.receiver.got)
    assert set(attempts) == events
    last = {got.json["id"]: _attempt(got) for got in market.receiver.got}
    assert last == dict(attempts), "a message was sent again after it was taken"


def _attempt(got: Got) -> int:
    return int(got.headers["forager-attempt"])
