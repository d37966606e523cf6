"""Whether an offer may replace the one that is known.

Each visit moves a product's price in one of these ways:

    ABSENT      the page has no price, and none was known
    ACCEPTED    the price is plausible, and taken
    REFUSED     the price can never be right here; the known one stays
    UNCONFIRMED the price is doubtful; the known one stays, and the doubt is remembered
    CONFIRMED   the same doubtful price stands on a later page: it is taken

A doubt ends when it is confirmed, or when a later page shows a plausible price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from forager.amounts import amount_text
from forager.extract.product.places import DEAL, STATING
from forager.extract.product.product import GONE, Availability
from forager.products.validation.fields import FieldViolation, Severity, UnconfirmedValue

# a larger change must be seen twice before it is accepted
LARGEST_STEP = 10
# placeholders of shops for an unknown price
_PLACEHOLDERS = frozenset([Decimal("0.01"), Decimal("1")])
_MANY_NINES = Decimal("99999")
# nines that are no price in any currency
_ABSURD_NINES = Decimal(9_999_999)
# of stored values of variants that wait for confirmation
_VALUE_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Offer:
    """Price and availability."""

    price: Decimal | None = None
    list_price: Decimal | None = None
    currency: str | None = None
    availability: str | None = None


class Standing(StrEnum):
    """Whether a price is stored, and why not."""

    ABSENT = "absent"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCONFIRMED = "held"
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Past:
    """The state of a product before a visit; empty before the first one."""

    offer: Offer = Offer()
    # by field: values that wait for confirmation
    unconfirmed: Mapping[str, UnconfirmedValue] = field(default_factory=dict)
    variants: Sequence[PlainVariant] = ()
    # where the price was read
    price_origin: str | None = None
    # marked as wrong by a user
    rejected: Set[Decimal] = frozenset()
    # by another parser version, whose places differ
    is_reread: bool = False


@dataclass(frozen=True, slots=True)
class OfferCheck:
    """The offer to store, how its price was decided, and the problems."""

    offer: Offer
    standing: Standing
    problems: tuple[FieldViolation, ...] = ()
    variants: Sequence[PlainVariant] = ()


def check_offer(
    seen: Offer,
    past: Past,
    *,
    page: str | None = None,
    origin: str | None = None,
    is_shown: bool = False,
    domain_currency: str | None = None,
    impossible: Set[str] = frozenset(),
) -> OfferCheck:
    """Decide about one visit. `page` names what was read: reading it again confirms nothing.

    `origin` is where the price was read: another place is doubted like an implausible price, and so
    is the end of a deal unless the page visibly shows the stated price (`is_shown`).

    `impossible` are the fields whose values broke a rule and are missing for that: what is known
    of them stays, however often they come.
    """
    availability, about_stock = _check_availability(seen, past, page, impossible)
    if {"price", "currency"} & impossible:
        money, standing, about_price = _keep_money(seen, past, domain_currency, impossible)
    else:
        place = origin, is_shown
        money, standing, about_price = _check_money(seen, past, page, place, domain_currency)
    offer = replace(money, availability=availability)
    return OfferCheck(offer, standing, (*about_price, *about_stock))


_Money = tuple[Offer, Standing, tuple[FieldViolation, ...]]

# --- money -----------------------------------------------------------------------------------


def _keep_money(
    seen: Offer, past: Past, domain_currency: str | None, impossible: Set[str]
) -> _Money:
    """Accept a price without a valid currency only while no better one is known or expected."""
    if "price" in impossible or past.offer.price is not None or domain_currency is not None:
        return past.offer, Standing.REFUSED, ()
    return seen, Standing.ABSENT if seen.price is None else Standing.ACCEPTED, ()


def _check_money(
    seen: Offer,
    past: Past,
    page: str | None,
    place: tuple[str | None, bool],
    domain_currency: str | None,
) -> _Money:
    seen, problems = _with_currency(seen, past.offer, domain_currency)
    if refusal := _refusal(seen, past, domain_currency):
        return past.offer, Standing.REFUSED, (refusal,)
    doubt = _doubt(seen, past.offer) or _doubt_place(seen, past, *place)
    if doubt is None:
        return seen, Standing.ABSENT if seen.price is None else Standing.ACCEPTED, problems
    before = past.unconfirmed.get("price")
    now = UnconfirmedValue(_as_text(seen), page)
    if before is not None and _confirms(now, before):
        return seen, Standing.CONFIRMED, problems
    # a page that is parsed again keeps its first time
    waiting = before if before is not None and before.value == now.value else now
    return past.offer, Standing.UNCONFIRMED, (replace(doubt, unconfirmed=waiting), *problems)


def _refusal(seen: Offer, past: Past, domain_currency: str | None) -> FieldViolation | None:
    if seen.price is not None and seen.price in past.rejected:
        message = f"a user marked {amount_text(seen.price)} as wrong"
        return FieldViolation("price", "rejected", message, Severity.ERROR)
    if seen.price is not None and seen.price >= _ABSURD_NINES and _is_placeholder(seen.price):
        message = f"{amount_text(seen.price)} is no price, however often it is shown"
        return FieldViolation("price", "placeholder", message, Severity.ERROR)
    if seen.price is None or domain_currency in (None, seen.currency):
        return None
    message = f"the price is in {seen.currency}; the domain's currency is {domain_currency}"
    return FieldViolation("currency", "domain", message, Severity.ERROR)


def _doubt(seen: Offer, known: Offer) -> FieldViolation | None:
    """Why an offer is not accepted at once."""
    if seen.price is None:
        return _doubt_absence(seen, known)
    if known.price is not None and None not in (seen.currency, known.currency):
        if seen.currency != known.currency:
            message = f"the currency was {known.currency}, and is {seen.currency} now"
            return FieldViolation("currency", "changed", message, Severity.DOUBT)
        if not known.price / LARGEST_STEP <= seen.price <= known.price * LARGEST_STEP:
            message = (
                f"the price was {amount_text(known.price)}, and is {amount_text(seen.price)} now"
            )
            return FieldViolation("price", "step", message, Severity.DOUBT)
    if seen.price != known.price and _is_placeholder(seen.price):
        message = f"{amount_text(seen.price)} is what shops write where there is no price yet"
        return FieldViolation("price", "placeholder", message, Severity.DOUBT)
    return None


def _doubt_absence(seen: Offer, known: Offer) -> FieldViolation | None:
    if known.price is None or seen.availability in (*GONE, Availability.ON_REQUEST):
        return None
    message = f"the price was {amount_text(known.price)}, and the page shows none now"
    return FieldViolation("price", "vanished", message, Severity.DOUBT)


_DATA, _SHOWN = "structured data", "the visible page"
_PLACES = {**dict.fromkeys(STATING, _DATA), "dom": _SHOWN, "learned": _SHOWN, "script": "scripts"}


def _doubt_place(
    seen: Offer, past: Past, origin: str | None, is_shown: bool
) -> FieldViolation | None:
    """A price of another place may be another price; a deal beside a stated price is none.

    A stated price that the page does not show does not end a deal: the page may only not strike
    it through.
    """
    if seen.price is None or past.offer.price is None or past.is_reread:
        return None
    if seen.price == past.offer.price or origin == DEAL:
        return None
    if past.price_origin == DEAL and is_shown:
        return None
    before, now = (_PLACES.get(str(o).partition(":")[0]) for o in (past.price_origin, origin))
    if before == now or None in (before, now):
        return None
    message = f"the price was read from {before}, and {amount_text(seen.price)} is read from {now}"
    return FieldViolation("price", "place", message, Severity.DOUBT)


def _is_placeholder(price: Decimal) -> bool:
    if price in _PLACEHOLDERS:
        return True
    whole = f"{price:f}".partition(".")[0]
    return price >= _MANY_NINES and set(whole) == {"9"}


def _with_currency(
    seen: Offer, known: Offer, domain_currency: str | None
) -> tuple[Offer, tuple[FieldViolation, ...]]:
    """Add the currency of the domain, or the last known one, to a price without a currency."""
    if seen.price is None or seen.currency is not None:
        return seen, ()
    if domain_currency is not None:
        return replace(seen, currency=domain_currency), ()
    if known.currency is not None:
        message = f"the page names no currency; it was {known.currency} before"
        problem = FieldViolation("currency", "missing", message, Severity.WARNING)
        return replace(seen, currency=known.currency), (problem,)
    message = "the page names no currency"
    return seen, (FieldViolation("currency", "missing", message, Severity.WARNING),)


# a stored variant: its amounts are text
PlainVariant = dict[str, Any]
_KEY_LENGTH = 200


def variant_key(variant: PlainVariant) -> str | None:
    """The key of a variant in its history."""
    keys = (variant.get(name) for name in ("sku", "gtin", "url", "name"))
    return next((key[:_KEY_LENGTH] for key in keys if key), None)


def check_variants(
    seen: Sequence[PlainVariant], past: Past, *, page: str | None = None
) -> tuple[list[PlainVariant], tuple[FieldViolation, ...]]:
    """The variants to store: one whose price changes too much keeps the known price."""
    known = {variant_key(each): each for each in past.variants}
    doubted = {
        key: each for each in seen
        if (key := variant_key(each)) and key in known and _moves_too_far(known[key], each)
    }  # fmt: skip
    if not doubted:
        return list(seen), ()
    reasons = [
        f"{key} was {_price_of(known[key])}, and is {_price_of(v)}" for key, v in doubted.items()
    ]
    now = UnconfirmedValue("; ".join(sorted(reasons))[:_VALUE_LENGTH], page)
    before = past.unconfirmed.get("variants")
    if before is not None and _confirms(now, before):
        return list(seen), ()
    waiting = before if before is not None and before.value == now.value else now
    message = f"the price of {reasons[0][:_VALUE_LENGTH]} now"
    problem = FieldViolation("variants", "step", message, Severity.DOUBT, waiting)
    return [known[key] if (key := variant_key(v)) in doubted else v for v in seen], (problem,)


def _moves_too_far(known: PlainVariant, seen: PlainVariant) -> bool:
    if not (known.get("price") and seen.get("price")):
        return False
    old, new = Decimal(known["price"]), Decimal(seen["price"])
    same = known.get("currency") == seen.get("currency")
    return same and not old / LARGEST_STEP <= new <= old * LARGEST_STEP


def _check_availability(
    seen: Offer, past: Past, page: str | None, impossible: Set[str]
) -> tuple[str | None, tuple[FieldViolation, ...]]:
    """Accept an availability at once, and a missing one when it is missing again."""
    known, before = past.offer.availability, past.unconfirmed.get("availability")
    if "availability" in impossible:
        return known, ()
    now = UnconfirmedValue(None, page)
    if seen.availability is not None or known is None:
        return seen.availability, ()
    if before is not None and _confirms(now, before):
        return None, ()
    message = f"the page says nothing of stock; it was {known} before"
    problem = FieldViolation("availability", "missing", message, Severity.WARNING, before or now)
    return known, (problem,)


def _confirms(now: UnconfirmedValue, before: UnconfirmedValue) -> bool:
    """Whether another page shows the same value; without an archive, every visit does."""
    return now.value == before.value and (now.page is None or now.page != before.page)


def _as_text(offer: Offer) -> str | None:
    if offer.price is None:
        return None
    return f"{offer.price.normalize():f} {offer.currency or ''}".strip()


def _price_of(variant: PlainVariant) -> str:
    return amount_text(Decimal(variant["price"]))
