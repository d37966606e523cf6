"""Operations on products: lists, details, prices and numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from forager.amounts import amount_text
from forager.errors import InvalidInput
from forager.extract.product.wording import gtin_of
from forager.hints import Hint, action
from forager.operations.fields import FoundBy
from forager.operations.models import (
    Amount,
    Limit,
    Listed,
    Moment,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    RowId,
    example,
    listed,
)
from forager.operations.operation import Context, Group
from forager.products import models, service
from forager.products.filters import PriceDirection, PriceMeasure, ProductOrder
from forager.products.lookup import find_product
from forager.products.models import ProductQuery
from forager.products.offers import compare_offers
from forager.products.price_history import largest_changes, price_history
from forager.products.replacements import list_replacements
from forager.products.search import MAX_CHARACTERS, list_or_search
from forager.products.validation import withheld

products = Group("products", "Products: prices, stock, history, search, export.", "Products")


async def _find(context: Context, which: str) -> int:
    async with context.database.connection() as connection:
        return await find_product(connection, which)


URL, GTIN = "https://example.org/", "4006381333931"
ProductId = Annotated[RowId, Field(description="ID of the product."), FoundBy(_find, "URL")]
Url = Annotated[
    PlainText, Field(min_length=1, max_length=8000, description="URL of its page.", examples=[URL])
]
Gtin = Annotated[
    PlainText, Field(min_length=8, max_length=40, description="GTIN or EAN.", examples=[GTIN])
]
WORDS = 'Words, "exact phrases", -without, a or b, a SKU, a GTIN: best first.'
Text = Annotated[PlainText, Field(max_length=MAX_CHARACTERS, description=WORDS)]
SORTED = "Newest first by default. Drops: the largest price drop first. Not with `q`."
Sorted = Annotated[ProductOrder, Field(description=SORTED)]
VARIANT = "Only this variant, by SKU, GTIN, URL or name."
Variant = Annotated[PlainText, Field(min_length=1, max_length=200, description=VARIANT)]
Since = Annotated[Moment, Field(description="Only changes since this time, UTC without a zone.")]
Direction = Annotated[PriceDirection, Field(description="Only price drops, or only rises.")]
Measure = Annotated[
    PriceMeasure, Field(description="Order by percent, or by amount in any currency.")
]
FILTER_FLAGS = {"has_problems": "--problems/--no-problems", "not_seen_since": "--not-seen-for"}


@products.operation("list", "GET /products", limit=20, flags=FILTER_FLAGS)
async def list_products(
    context: Context,
    paging: Paging,
    wanted: ProductQuery,
    q: Text | None = None,
    order: Sorted | None = None,
) -> models.ProductList:
    """List products that match all filters, newest first; with `q`, sorted by relevance."""
    if q is not None and order is not None:
        hint = "Give `q` or `order`, not both."
        raise InvalidInput("what is searched for is ordered by how well it fits", hint=hint)
    found = await list_or_search(
        context.database, q, wanted.filters(), order, engine=context.engine, **paging
    )
    return models.ProductList.of(found)


@products.operation("stats", "GET /products/stats", cached=True)
async def stats(context: Context) -> models.ProductStats:
    """Show statistics of all products."""
    return models.ProductStats.build(await service.product_stats(context.database))


@products.operation(
    "changes", "GET /products/changes", flags=FILTER_FLAGS, none="No price has changed since then."
)
async def changes(
    context: Context,
    wanted: ProductQuery,
    since: Since | None = None,
    direction: Direction | None = None,
    by: Measure = PriceMeasure.PERCENT,
    limit: Limit = 20,
) -> models.PriceMoves:
    """List the largest price changes since a given time, by default of 7 days."""
    start = since or datetime.now(UTC) - timedelta(days=7)
    found = await largest_changes(
        context.database, start, wanted.filters(), direction=direction, by=by, limit=limit
    )
    return models.PriceMoves(items=[models.PriceMove.of(each) for each in found])


@products.operation("offers", "GET /products/{product_id}/offers", command=False)
async def offers(context: Context, product_id: ProductId) -> models.ShopOffers:
    """Compare the offers of the same article in all shops, cheapest first."""
    return await offers_of(context, str(product_id))


@products.operation("offers", "GET /products/offers", command=False)
async def offers_by_gtin(context: Context, gtin: Gtin) -> models.ShopOffers:
    """Compare the offers of one article in all shops by its GTIN, cheapest first."""
    if gtin_of(gtin) is None:
        raise InvalidInput("this is not a GTIN")
    return await offers_of(context, gtin)


async def offers_of(context: Context, which: str) -> models.ShopOffers:
    found = await compare_offers(context.database, which)
    return models.ShopOffers(items=[models.ShopOffer.of(each) for each in found])


@products.operation(
    "replaced",
    "GET /products/replaced",
    limit=100,
    columns={
        "PRODUCT": "product_id",
        "KNOWN AS": "product_name",
        "PAGE SHOWS": "name",
        "VISITS": "visits",
        "SINCE": "first_seen_at",
    },
    none="All pages show their products.",
)
async def list_replaced(context: Context, paging: Paging) -> Listed[models.Replacement]:
    """List products whose pages show another product now; each keeps its last price."""
    page = await list_replacements(context.database, **paging)
    return listed(page, models.Replacement.of)


@products.operation("show", "GET /products/by-url", command=False)
async def show_by_url(context: Context, url: Url) -> models.ProductDetail:
    """Show a product by the URL of its page."""
    if url.strip().isdigit():
        raise InvalidInput("this is not a URL", hint=Hint("By its id: {}", action("products show")))
    return models.ProductDetail.build(await service.show_product(context.database, url))


@products.operation("show", "GET /products/{product_id}")
async def show(context: Context, product_id: ProductId) -> models.ProductDetail:
    """Show all data of one product, with the confidence of each field."""
    found = await service.show_product(context.database, str(product_id))
    return models.ProductDetail.build(found)


@products.operation("history", "GET /products/{product_id}/history", limit=100)
async def history(
    context: Context,
    product_id: ProductId,
    paging: Paging,
    variant: Variant | None = None,
    since: Since | None = None,
) -> Listed[models.PriceChange]:
    """Show the price history of a product, newest first, with prices that were withheld."""
    page = await price_history(
        context.database, str(product_id), variant=variant, withheld=True, since=since, **paging
    )
    return listed(page, models.PriceChange.of)


class RejectedPrice(ResponseModel):
    """A price that was marked as wrong."""

    entries: int = Field(description="Entries of the history that were removed.")


class AllowedPrice(ResponseModel):
    """A price that may be stored again."""

    product_id: int = Field(description="ID of the product.")
    price: Amount = Field(description="The price.")


class SeenPrice(RequestModel):
    """A price of a product, in any currency."""

    model_config = example(price="49.90")

    price: Decimal = Field(gt=0, lt=10**10, allow_inf_nan=False, description="The price.")


@products.operation(
    "reject",
    "POST /products/{product_id}/reject",
    arguments=("price",),
    done="the price left the history and is not stored again; entries removed: {entries}",
)
async def reject(context: Context, product_id: ProductId, order: SeenPrice) -> RejectedPrice:
    """Mark a price as wrong: it leaves the history, and is not stored when it is seen again."""
    found = await withheld.reject_price(context.database, str(product_id), order.price)
    return RejectedPrice(entries=found)


@products.operation(
    "allow",
    "POST /products/{product_id}/allow",
    arguments=("price",),
    done="{price} is stored when it is seen again",
)
async def allow(context: Context, product_id: ProductId, order: SeenPrice) -> AllowedPrice:
    """Accept a price again that was marked as wrong."""
    await withheld.allow_price(context.database, str(product_id), order.price)
    return AllowedPrice(product_id=product_id, price=amount_text(order.price))


products.by_hand("track", "POST /tasks", button="Track a product")
products.by_hand("search", "GET /products")
products.by_hand("image", "GET /products/{product_id}/images/{position}")
products.by_hand("export", "GET /products/export")
products.by_hand(
    "audit", "POST /products/audit", "GET /products/audit", page="Audit", button="Run now"
)
