"""The options that say which products are meant, in the same words for every command."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer

from forager.amounts import parse_duration
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.products.filters import Filters

MinPrice = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="At least this price.", show_default=False)
]
MaxPrice = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="At most this price.", show_default=False)
]
Currency = Annotated[
    str | None, typer.Option(metavar="CODE", help="Priced in this currency.", show_default=False)
]
Availability = Annotated[
    list[str] | None,
    typer.Option(help="in_stock, out_of_stock, …; may be repeated.", show_default=False),
]
MinRating = Annotated[
    str | None, typer.Option(metavar="STARS", help="Rated at least so.", show_default=False)
]
Brand = Annotated[str | None, typer.Option(help="Of this brand.", show_default=False)]
Category = Annotated[
    str | None,
    typer.Option(help="With this in its path: 'Shoes', 'Men > Shoes'.", show_default=False),
]
Domain = Annotated[
    str | None,
    typer.Option(
        help="Of this host, of hosts below it, or of the domain that covers it.",
        show_default=False,
    ),
]
ChangedSince = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help="Changed since: 2d, 12h, or 2026-01-31T12:00Z.", show_default=False
    ),
]
Problems = Annotated[
    bool | None,
    typer.Option(
        "--problems/--no-problems", help="With problems, or without any.", show_default=False
    ),
]
Sku = Annotated[str | None, typer.Option(help="With this SKU.", show_default=False)]
Gtin = Annotated[str | None, typer.Option(help="With this GTIN, EAN or UPC.", show_default=False)]


def filters_of(
    *,
    min_price: str | None,
    max_price: str | None,
    currency: str | None,
    availability: list[str] | None,
    min_rating: str | None,
    brand: str | None,
    category: str | None,
    domain: str | None,
    changed_since: str | None,
    problems: bool | None,
    sku: str | None,
    gtin: str | None,
) -> Filters:
    """The filters that these options ask for."""
    from forager.products.filters import Filters

    return Filters(
        min_price=_amount(min_price),
        max_price=_amount(max_price),
        currency=currency,
        availability=tuple(availability or ()),
        min_rating=_amount(min_rating),
        brand=brand,
        category=category,
        domain=domain,
        changed_since=moment(changed_since),
        has_problems=problems,
        sku=sku,
        gtin=gtin,
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


def _ago(text: str) -> datetime:
    try:
        return datetime.now(UTC) - parse_duration(text)
    except InvalidInput:
        raise InvalidInput(
            f"{text[:60]!r} is neither a time nor an age",
            hint="Write it as 2d, 12h, 90min, 2026-01-31 or 2026-01-31T12:00Z.",
        ) from None


def _amount(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        return Decimal(text.strip()[:40])
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not a number", hint="Write it as 49.90.") from None
