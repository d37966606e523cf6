"""The conditions of alert rules: what a new offer is compared with."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum

from forager.extract.product.product import GONE, Availability
from forager.products.product import AlertRule
from forager.products.store.alerts import PastOffer
from forager.products.store.offers import CompetingOffers
from forager.products.validation.plausibility import Offer

NO_RIVALS = CompetingOffers({}, None, None)
_IN_STOCK = frozenset([Availability.IN_STOCK, Availability.LIMITED])


class AlertKind(StrEnum):
    """What an alert rule watches for."""

    PRICE_DROP = "price_drop"
    PRICE_RISE = "price_rise"
    PRICE_BELOW = "price_below"
    PRICE_ABOVE = "price_above"
    NEW_LOW = "new_low"
    BACK_IN_STOCK = "back_in_stock"
    # the offer becomes the best one of its item, or stops being it
    BEST_OFFER = "best_offer"
    # below the own price
    UNDERCUT = "undercut"


def crosses(
    rule: AlertRule, new: Offer, past: PastOffer, place: int | None, rivals: CompetingOffers
) -> bool:
    """Whether the condition holds for the new offer and did not hold for the last known one.

    `place` is that of the days of the rule in the ranges of prices.
    """
    if rule.kind == AlertKind.BACK_IN_STOCK:
        was_gone = past.availability is not None and past.availability not in _IN_STOCK
        return was_gone and new.availability in _IN_STOCK
    if new.currency is not None and rule.currency not in (None, new.currency):
        return False
    if rule.kind == AlertKind.BEST_OFFER:
        return _is_new_best(new, past, rivals.lowest.get(new.currency))
    if new.price is None or rule.currency not in (None, new.currency):
        return False
    if rule.kind == AlertKind.UNDERCUT:
        own = rivals.own_price if rivals.own_currency == new.currency else None
        return own is not None and _falls_below(own, new.price, past.price)
    if rule.kind == AlertKind.PRICE_BELOW:
        assert rule.amount is not None
        return _falls_below(rule.amount, new.price, past.price)
    if rule.kind == AlertKind.PRICE_ABOVE:
        assert rule.amount is not None
        return new.price > rule.amount and (past.price is None or past.price <= rule.amount)
    return past.price is not None and _moves(rule, new.price, past.price, past, place)


def _falls_below(limit: Decimal, new: Decimal, old: Decimal | None) -> bool:
    return new < limit and (old is None or old >= limit)


def _moves(rule: AlertRule, new: Decimal, old: Decimal, past: PastOffer, place: int | None) -> bool:
    """Whether a price is a new low, or changed by more than a percentage."""
    if rule.kind == AlertKind.NEW_LOW:
        assert place is not None
        lowest = past.lowest[place]
        return new < old and (lowest is None or new < lowest)
    assert rule.percent is not None
    if rule.kind == AlertKind.PRICE_RISE:
        reference = (past.lowest[place] if place is not None else None) or old
        return new >= reference * (1 + rule.percent / 100) > old
    reference = (past.highest[place] if place is not None else None) or old
    return new <= reference * (1 - rule.percent / 100) < old


def _is_new_best(new: Offer, past: PastOffer, others: Decimal | None) -> bool:
    """Whether an offer becomes the cheapest that can be bought, or stops being it."""
    if others is None or (past.price is None and past.availability is None):
        return False
    is_best = _is_below(new.price, new.availability, others)
    return is_best != _is_below(past.price, past.availability, others)


def _is_below(price: Decimal | None, availability: str | None, others: Decimal) -> bool:
    return price is not None and availability not in GONE and price < others
