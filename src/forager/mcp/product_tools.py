"""The tools for products."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import AwareDatetime, Field

from forager.mcp import views
from forager.mcp.call import Call
from forager.mcp.text import fenced_lines, more_of
from forager.mcp.tools import Cursor, Limit, Name, Url, Words
from forager.operations.models import Currency
from forager.products import search as product_search
from forager.products.filters import Filters
from forager.products.price_history import price_history


async def search_products(
    call: Call,
    query: Annotated[Words, Field(description="Words, a SKU or a GTIN.")],
    domain: Annotated[Name | None, Field(description="Only of this shop.")] = None,
    min_price: Annotated[Decimal | None, Field(ge=0)] = None,
    max_price: Annotated[Decimal | None, Field(ge=0)] = None,
    currency: Currency | None = None,
    limit: Limit = 10,
    cursor: Cursor = None,
) -> str:
    """Search tracked products; returns prices, availability and URLs."""
    filters = Filters(domain=domain, min_price=min_price, max_price=max_price, currency=currency)
    page = await product_search.search_products(
        call.services.database,
        query,
        filters,
        cursor=cursor,
        limit=limit,
        engine=call.services.engine,
    )
    lines = fenced_lines([*map(views.product_line, page.items), *filter(None, [page.note])])
    return "\n".join([*lines, *more_of(page.next_cursor)]) or "No products found."


async def product_history(
    call: Call,
    product: Annotated[Url, Field(description="The product's id or URL.")],
    since: AwareDatetime | None = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> str:
    """Show how price and availability of a tracked product changed, newest first."""
    page = await price_history(
        call.services.database, product, since=since, cursor=cursor, limit=limit
    )
    lines = [*fenced_lines(map(views.price_line, page.items)), *more_of(page.next_cursor)]
    return "\n".join(lines) or "No price was recorded."
