"""Alert rules: which new offers trigger an event. CLI, API, library and dashboard call these.

A rule is evaluated in the transaction that stores the new offer, against the offers before it. It
triggers when its condition holds now and did not hold before: once per crossing, not per visit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from forager.db.cursor import Page, check_limit, decode_number, page_of
from forager.db.database import Connection, Database
from forager.errors import AlreadyThere, InvalidInput, NotAllowed, NotFound
from forager.hints import Hint, action
from forager.products.alerts.conditions import NO_RIVALS, AlertKind, crosses
from forager.products.filters import Filters
from forager.products.lookup import find_product
from forager.products.price_history import percent
from forager.products.product import AlertRule
from forager.products.service import resolved
from forager.products.store import alerts as store
from forager.products.store import lists
from forager.products.store.alerts import OfferKey, PastOffer
from forager.products.store.offers import CompetingOffers, select_rivals
from forager.products.validation.plausibility import Offer

__all__ = ["AlertKind"]

# each is evaluated with every changed offer
MAX_SELECTIONS = 1_000
_STEP = Decimal("0.001")


# the values that a kind requires, and those that it may have
_REQUIRED = {
    AlertKind.PRICE_DROP: "percent", AlertKind.PRICE_RISE: "percent",
    AlertKind.PRICE_BELOW: "amount", AlertKind.PRICE_ABOVE: "amount", AlertKind.NEW_LOW: "days",
}  # fmt: skip
_OPTIONAL = {
    AlertKind.PRICE_DROP: {"days", "currency"},
    AlertKind.PRICE_RISE: {"days", "currency"},
    AlertKind.PRICE_BELOW: {"currency"},
    AlertKind.PRICE_ABOVE: {"currency"},
    AlertKind.NEW_LOW: {"currency"},
    AlertKind.BEST_OFFER: {"currency"},
    AlertKind.UNDERCUT: {"currency"},
}


@dataclass(frozen=True, slots=True)
class NewAlert:
    """A rule to add, for one product or for all that match the other fields.

    `days` of a price drop or rise: compare with the highest or lowest price of these days, not with
    the last price.

        NewAlert(AlertKind.PRICE_BELOW, amount=Decimal("50"), currency="EUR", brand="Lumina")
    """

    kind: AlertKind
    percent: Decimal | None = None
    amount: Decimal | None = None
    currency: str | None = None
    days: int | None = None
    # ID or URL
    product: str | None = None
    domain: str | None = None
    brand: str | None = None
    category: str | None = None
    gtin: str | None = None


VALUES = ("percent", "amount", "currency", "days")
SELECTION = ("domain", "brand", "category", "gtin")


async def add_alert(database: Database, new: NewAlert) -> AlertRule:
    """Add a rule; it applies to changes from now on."""
    new = checked_alert(new)
    async with database.transaction() as connection:
        product_id = None if new.product is None else await find_product(connection, new.product)
        filters = await resolved(connection, Filters(**selection_of(new)))
        selection = {name: getattr(filters, name) for name in selection_of(new)}
        if product_id is None and await store.count_selections(connection) >= MAX_SELECTIONS:
            raise NotAllowed(
                f"there are {MAX_SELECTIONS:,} rules for more than one product already",
                hint=Hint("{} deletes rules.", action("alerts delete")),
            )
        values = {**asdict(new), "kind": new.kind.value, "product_id": product_id}
        rule_id = await store.insert_rule(connection, values, selection)
        if rule_id is None:
            raise AlreadyThere("the same alert rule exists already")
        return await _existing(connection, rule_id)


async def list_alerts(
    database: Database, *, cursor: str | None = None, limit: int = 100
) -> Page[AlertRule]:
    """Rules by ID."""
    check_limit(limit)
    after = decode_number(cursor) or 0
    found = await database.run(store.select_rules, after=after, limit=limit + 1)
    return page_of(found, limit, lambda rule: rule.id)


async def show_alert(database: Database, rule_id: int) -> AlertRule:
    """A rule by its ID; raises NotFound."""
    async with database.connection() as connection:
        return await _existing(connection, rule_id)


async def change_alert(database: Database, rule_id: int, changes: Mapping[str, Any]) -> AlertRule:
    """Change the values of a rule; its products and its kind stay."""
    async with database.transaction() as connection:
        rule = await _existing(connection, rule_id)
        old = {name: getattr(rule, name) for name in VALUES}
        new = checked_alert(NewAlert(AlertKind(rule.kind), **{**old, **changes}))
        if not await store.update_rule(connection, rule_id, {n: getattr(new, n) for n in VALUES}):
            raise AlreadyThere("the same alert rule exists already")
        return await _existing(connection, rule_id)


async def delete_alert(database: Database, rule_id: int) -> AlertRule:
    """Delete a rule, and return it as it was; raises NotFound."""
    async with database.transaction() as connection:
        rule = await _existing(connection, rule_id)
        await store.delete_rule(connection, rule_id)
        return rule


async def _existing(connection: Connection, rule_id: int) -> AlertRule:
    rule = await store.select_rule(connection, rule_id)
    if rule is None:
        raise NotFound(
            f"alert rule {rule_id} not found",
            hint=Hint("{} lists alert rules.", action("alerts list")),
        )
    return rule


def checked_alert(new: NewAlert) -> NewAlert:
    """A rule that is complete; raises InvalidInput."""
    required = _REQUIRED.get(new.kind)
    if required is not None and getattr(new, required) is None:
        raise InvalidInput(f"a {new.kind} rule needs `{required}`")
    allowed = {required, *_OPTIONAL.get(new.kind, ())}
    for name in VALUES:
        if getattr(new, name) is not None and name not in allowed:
            raise InvalidInput(f"a {new.kind} rule has no `{name}`")
    if new.percent is not None:
        _check_range("percent", new.percent, _STEP, Decimal("99.999"))
    if new.amount is not None:
        _check_range("amount", new.amount, _STEP, Decimal("9999999999"))
    if new.days is not None:
        _check_range("days", Decimal(new.days), Decimal(1), Decimal(3_650))
    currency = None if new.currency is None else new.currency.strip().upper()
    if currency is not None and not re.fullmatch("[A-Z]{3}", currency):
        raise InvalidInput(f"{currency[:20]!r} is not a currency", hint="For example EUR.")
    if new.product is not None and selection_of(new):
        raise InvalidInput(
            "a rule is for one product or for a selection",
            hint=f"Give `product`, or any of {', '.join(SELECTION)}.",
        )
    return replace(new, currency=currency)


def _check_range(name: str, value: Decimal, low: Decimal, high: Decimal) -> None:
    if not (value.is_finite() and low <= value <= high):
        raise InvalidInput(f"`{name}` must be from {low} to {high}, not {value}")


def selection_of(new: NewAlert) -> dict[str, Any]:
    return {name: getattr(new, name) for name in SELECTION if getattr(new, name) is not None}


async def triggered_alerts(
    connection: Connection, offers: Mapping[OfferKey, Offer]
) -> list[tuple[int, dict[str, Any]]]:
    """The product and payload of each rule that new offers trigger, before they are stored.

    The caller has locked the products, so that no other transaction adds to their history.
    """
    ids = list(dict.fromkeys(product_id for product_id, _ in offers))
    rules = await store.select_rules_for(connection, ids) if offers else []
    if not rules:
        return []
    days = sorted({rule.days for rule in rules if rule.days is not None})
    past = await store.select_past_offers(connection, offers, days)
    rivals = await _rivals(connection, {rule.kind for rule in rules}, ids)
    spans = {length: place for place, length in enumerate(days)}
    triggered: list[tuple[int, dict[str, Any]]] = []
    fired: list[int] = []
    for rule in rules:
        place = None if rule.days is None else spans[rule.days]
        crossed = [
            key for key, offer in offers.items()
            if rule.product_id in (None, key[0])
            # variants have no other offers
            and crosses(rule, offer, past[key], place,
                        rivals.get(key[0], NO_RIVALS) if key[1] is None else NO_RIVALS)
        ]  # fmt: skip
        selected = set(
            await selected_products(connection, rule, [product_id for product_id, _ in crossed])
        )
        triggered += [
            (key[0], _payload(rule, offers[key], past[key]))
            for key in crossed
            if key[0] in selected
        ]
        if selected:
            fired.append(rule.id)
    if fired:
        await store.mark_triggered(connection, fired)
    return triggered


async def _rivals(
    connection: Connection, kinds: Set[str], product_ids: Sequence[int]
) -> Mapping[int, CompetingOffers]:
    """Prices of other offers, and the own prices, if rules compare with them."""
    if not kinds & {AlertKind.BEST_OFFER, AlertKind.UNDERCUT}:
        return {}
    return await select_rivals(connection, product_ids)


async def selected_products(
    connection: Connection, rule: AlertRule, product_ids: Sequence[int]
) -> Iterable[int]:
    if not product_ids or not rule.selection:
        return product_ids
    try:
        filters = await resolved(connection, Filters(**rule.selection))
    except NotFound:  # the domain was deleted
        return ()
    return await lists.select_matching(connection, filters, product_ids)


def _payload(rule: AlertRule, new: Offer, past: PastOffer) -> dict[str, Any]:
    terms = ("id", "kind", "percent", "amount", "currency", "days")
    return {
        "rule": {name: value for name in terms if (value := getattr(rule, name)) is not None},
        **({} if past.variant is None else {"variant": past.variant}),
        "old": past.price,
        "new": new.price,
        "currency": new.currency,
        "percent": percent(past.price, new.price),
        "availability": new.availability,
    }
