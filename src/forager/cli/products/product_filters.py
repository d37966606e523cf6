"""Options that select products, shared by `list`, `search` and `export`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forager.amounts import parse_duration
from forager.cli.options import option
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.products.filters import Filters


@dataclass(frozen=True, slots=True)
class ProductOptions:
    """Options that select products."""

    min_price: str | None = option("At least this price.", metavar="AMOUNT")
    max_price: str | None = option("At most this price.", metavar="AMOUNT")
    currency: str | None = option("Priced in this currency.", metavar="CODE")
    availability: Annotated[
        list[str] | None, typer.Option(help="in_stock, out_of_stock, …; may be repeated.")
    ] = None
    min_rating: str | None = option("At least this rating.", metavar="STARS")
    brand: str | None = option("Of this brand.")
    category: str | None = option("With this in its path: 'Shoes', 'Men > Shoes'.")
    domain: str | None = option("Of this host, of hosts below it, or of the domain that covers it.")
    changed_since: str | None = option(
        "Changed since: 2d, 12h, or 2026-01-31T12:00Z.", metavar="WHEN"
    )
    problems: bool | None = option("With problems, or without any.", "--problems/--no-problems")

    def filters(self, **more: Any) -> Filters:
        from forager.products.filters import Filters

        return Filters(
            min_price=amount_of(self.min_price),
            max_price=amount_of(self.max_price),
            currency=self.currency,
            availability=tuple(self.availability or ()),
            min_rating=amount_of(self.min_rating),
            brand=self.brand,
            category=self.category,
            domain=self.domain,
            changed_since=moment(self.changed_since),
            has_problems=self.problems,
            **more,
        )


def moment(text: str | None) -> datetime | None:
    """A time, or how long ago it was; without a zone it is in UTC."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return _ago(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def column_names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (text or "").split(","))))


def _ago(text: str) -> datetime:
    try:
        return datetime.now(UTC) - parse_duration(text)
    except InvalidInput:
        raise InvalidInput(
            f"{text[:60]!r} is neither a time nor an age",
            hint="Write it as 2d, 12h, 90min, 2026-01-31 or 2026-01-31T12:00Z.",
        ) from None


def amount_of(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text.strip()[:40])
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not a number", hint="Write it as 49.90.") from None
