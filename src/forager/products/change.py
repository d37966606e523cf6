"""What a visit changed of a product, and the events that report it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forager.events.event import EventKind, NewEvent
from forager.products.price_history import percent
from forager.products.store.prices import VariantChange
from forager.products.store.writes import KnownProduct, ProductRow
from forager.products.validation.plausibility import Offer
from forager.products.visit import ProductVisit


@dataclass(frozen=True, slots=True)
class ProductChange:
    """A product before and after a visit."""

    visit: ProductVisit
    row: ProductRow
    known: KnownProduct

    @property
    def old(self) -> Offer:
        return self.known.offer

    @property
    def new(self) -> Offer:
        return self.row.content.offer

    @property
    def content_changed(self) -> bool:
        return not self.known.is_new and self.known.content_hash != self.row.content_hash

    @property
    def must_be_written(self) -> bool:
        """A new row was inserted with its content, unless its product was deleted meanwhile."""
        return self.content_changed or (self.known.is_new and not self.known.is_indexed)

    @property
    def must_be_indexed(self) -> bool:
        """Whether the entry of a search engine is outdated."""
        return self.known.is_new or self.known.moved or self.content_changed

    @property
    def offer_changed(self) -> bool:
        return self.known.is_new or self.old != self.new

    @property
    def price_changed(self) -> bool:
        old, new = self.old, self.new
        return not self.known.is_new and (old.price, old.currency) != (new.price, new.currency)

    @property
    def is_reread(self) -> bool:
        """Whether another parser version, or the template of the domain, reads another price.

        What differs then is the reading, not the shop.
        """
        if self.known.is_new:
            return False
        before = (self.known.parser, self.known.parser_version)
        is_other = before != (self.row.parser, self.row.version)
        return is_other or self.visit.is_decided_again(self.old, self.known.price_origin)

    @property
    def availability_changed(self) -> bool:
        return not self.known.is_new and self.old.availability != self.new.availability


def change_events(change: ProductChange) -> list[NewEvent]:
    """The events of a change: added, price, availability."""
    events = []
    if change.known.is_new:
        events.append(event_of(change, EventKind.PRODUCT_ADDED, _offer_payload(change.new)))
    if change.is_reread:
        return [*events, *_reread_events(change)]
    if change.price_changed:
        payload = _price_payload(change.old, change.new)
        events.append(event_of(change, EventKind.PRICE_CHANGED, payload))
    if change.availability_changed:
        payload = {"old": change.old.availability, "new": change.new.availability}
        events.append(event_of(change, EventKind.AVAILABILITY_CHANGED, payload))
    return events


def _reread_events(change: ProductChange) -> Iterator[NewEvent]:
    """One event for a reading that differs because another parser version has read the page."""
    if change.price_changed or change.availability_changed:
        payload = {
            **_price_payload(change.old, change.new),
            "old_availability": change.old.availability,
            "availability": change.new.availability,
            "old_parser": f"{change.known.parser} {change.known.parser_version}",
            "parser": change.row.parser,
            "version": change.row.version,
        }
        yield event_of(change, EventKind.REREAD, payload)


def event_of(change: ProductChange, kind: EventKind, payload: dict[str, Any]) -> NewEvent:
    named = {"name": change.row.content.product_name, "url": change.row.url}
    return NewEvent(kind, change.known.id, change.row.domain_id, {**named, **payload})


def _offer_payload(offer: Offer) -> dict[str, Any]:
    return {
        "price": offer.price,
        "list_price": offer.list_price,
        "currency": offer.currency,
        "availability": offer.availability,
    }


def _price_payload(old: Offer, new: Offer) -> dict[str, Any]:
    payload = {"old": old.price, "new": new.price, "currency": new.currency or old.currency}
    comparable = old.currency == new.currency
    if not comparable:
        payload["old_currency"] = old.currency
    return {**payload, "percent": percent(old.price, new.price) if comparable else None}


def separate_changes(
    changes: Mapping[int, ProductChange], variants: Iterable[VariantChange]
) -> Iterator[VariantChange]:
    """Changes of known variants other than that of the product itself."""
    for variant in variants:
        change = changes[variant.product_id]
        itself = change.offer_changed and _is_same_move(change, variant)
        itself = itself or change.is_reread
        if not variant.is_new and not change.known.is_new and not itself:
            yield variant


def _is_same_move(change: ProductChange, variant: VariantChange) -> bool:
    """Whether both changed in the same way; list prices are ignored, because variants have none."""
    before, after = (replace(offer, list_price=None) for offer in (change.old, change.new))
    return (before, after) == (variant.old, variant.new)


def variant_events(
    changes: Iterable[ProductChange], variants: Sequence[VariantChange]
) -> list[NewEvent]:
    """The events of changed variants."""
    by_id = {change.known.id: change for change in changes}
    return [
        event_of(
            by_id[variant.product_id],
            EventKind.VARIANT_CHANGED,
            {
                "variant": variant.variant,
                **_price_payload(variant.old, variant.new),
                "old_availability": variant.old_availability,
                "availability": variant.availability,
            },
        )
        for variant in separate_changes(by_id, variants)
    ]
