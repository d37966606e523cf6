"""Products: lists, details, prices, images, exports, audits; and analytics queries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from forager.analytics.answers import DEFAULT_DAYS, MOST_DAYS, Answer, list_queries
from forager.api.limits import (
    Limit,
    Listed,
    Paged20,
    Paged100,
    RowId,
    Url,
    analyse,
    listed,
)
from forager.api.models import LARGEST_INT, Moment, PlainText, Time, View
from forager.api.models import products as views
from forager.api.services import Operates, Reads, Services
from forager.api.streams import IMAGE_TYPES, MEDIA_TYPES, download, file_responses, image_response
from forager.db.cursor import Page
from forager.errors import InvalidInput
from forager.extract.product.wording import gtin_of
from forager.hints import Hint, action
from forager.products import service as products
from forager.products.audit import last_audit
from forager.products.export import Export, ExportContent, ExportFormat, export_stream
from forager.products.filters import Order
from forager.products.offers import compare_offers
from forager.products.price_history import largest_changes, price_history
from forager.products.search import MAX_CHARACTERS

router = APIRouter(prefix="/products", tags=["products"])

ProductId = RowId
Since = Annotated[Moment | None, Query(description="UTC without a zone.")]


Wanted = Annotated[views.ProductQuery, Query()]


@router.get("")
async def list_products(
    here: Reads,
    paging: Paged20,
    wanted: Wanted,
    q: Annotated[
        PlainText | None,
        Query(
            max_length=MAX_CHARACTERS,
            description='Words, "exact phrases", -without, a or b, a SKU, a GTIN: best first.',
            examples=["desk lamp"],
        ),
    ] = None,
    order: Annotated[
        Order | None, Query(description="Newest first by default. Not with `q`.")
    ] = None,
) -> views.ProductList:
    """List products that match all filters, newest first; with `q`, sorted by relevance."""
    if q is not None and order is not None:
        raise InvalidInput(
            "what is searched for is ordered by how well it fits",
            hint="Give `q` or `order`, not both.",
        )
    return views.ProductList.of(await here.find_products(q, wanted.filters(), order, paging))


@router.get("/stats")
async def stats(here: Reads) -> views.ProductStats:
    """Show statistics of all products."""
    return views.ProductStats.build(await here.product_stats())


@router.get("/changes")
async def changes(
    here: Reads, wanted: Wanted, since: Since = None, limit: Limit = 20
) -> views.PriceMoves:
    """List the largest price changes in percent since a given time."""
    start = since or datetime.now(UTC) - timedelta(days=7)
    found = await largest_changes(here.database, start, wanted.filters(), limit=limit)
    return views.PriceMoves(items=[views.PriceMove.of(each) for each in found])


@router.get("/offers")
async def offers_by_gtin(
    here: Reads,
    gtin: Annotated[PlainText, Query(min_length=8, max_length=40, examples=["4006381333931"])],
) -> views.ShopOffers:
    """Compare the offers of one article in all shops by its GTIN, cheapest first."""
    if gtin_of(gtin) is None:
        raise InvalidInput("this is not a GTIN")
    return await _offers(here, gtin)


async def _offers(here: Services, which: str) -> views.ShopOffers:
    found = await compare_offers(here.database, which)
    return views.ShopOffers(items=[views.ShopOffer.of(each) for each in found])


@router.get("/by-url")
async def show_by_url(url: Url, here: Reads) -> views.ProductDetail:
    """Show a product by the URL of its page."""
    if url.strip().isdigit():
        raise InvalidInput("this is not a URL", hint=Hint("By its id: {}", action("products show")))
    return views.ProductDetail.build(await products.show_product(here.database, url))


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses=file_responses(kind.partition(";")[0] for kind in MEDIA_TYPES.values()),
)
async def export(
    here: Reads,
    wanted: Wanted,
    format_: Annotated[ExportFormat, Query(alias="format")] = ExportFormat.JSONL,
    content: Annotated[
        ExportContent,
        Query(description="Products, or one row for each price change or each other offer."),
    ] = ExportContent.PRODUCTS,
    since: Annotated[
        Since, Query(description="With `history`: only changes since this time.")
    ] = None,
    columns: Annotated[
        PlainText | None,
        Query(max_length=1000, description="Column names separated by commas, or `all`."),
    ] = None,
    history: Annotated[
        bool, Query(deprecated=True, description="The same as `content=history`.")
    ] = False,
) -> Response:
    """Export all matching products, oldest first, as CSV, JSON lines or Parquet."""
    content = ExportContent.HISTORY if history else content
    if since is not None and content is not ExportContent.HISTORY:
        raise InvalidInput("`since` is for `history`", hint="Or give `changed_since`.")
    named = tuple(filter(None, (name.strip() for name in (columns or "").split(","))))
    asked = Export(format_, wanted.filters(), content, since, named)
    asked.schema()  # unknown columns are an error before the first byte is sent
    parts = export_stream(here.database, asked)
    return await download(parts, f"products.{format_}", MEDIA_TYPES[format_])


@router.get("/audit")
async def show_audit(here: Reads) -> views.Audit:
    """Show the findings of the last audit; workers run one every day."""
    return views.Audit.of(await last_audit(here.database))


@router.post("/audit")
async def run_audit(here: Operates) -> views.Audit:
    """Check the catalog for contradictory or stale data now, and return the findings."""
    return views.Audit.of(await here.audit())


@router.get("/{product_id}")
async def show(product_id: ProductId, here: Reads) -> views.ProductDetail:
    """Show all data of one product, with the confidence of each field."""
    return views.ProductDetail.build(await products.show_product(here.database, str(product_id)))


@router.get("/{product_id}/offers")
async def offers(product_id: ProductId, here: Reads) -> views.ShopOffers:
    """Compare the offers of the same article in all shops, cheapest first."""
    return await _offers(here, str(product_id))


@router.get("/{product_id}/history")
async def history(
    product_id: ProductId,
    here: Reads,
    paging: Paged100,
    variant: Annotated[
        PlainText | None,
        Query(
            min_length=1,
            max_length=200,
            description="Only this variant, by SKU, GTIN, URL or name.",
        ),
    ] = None,
    since: Since = None,
) -> Listed[views.PriceChange]:
    """Show the price history of a product, newest change first."""
    page = await price_history(
        here.database, str(product_id), variant=variant, since=since, **paging
    )
    return listed(page, views.PriceChange.of)


@router.get(
    "/{product_id}/images/{position}",
    response_class=Response,
    responses={
        200: {
            "description": "The image as it was stored.",
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}} for kind in IMAGE_TYPES
            },
        },
        304: {"description": "The same as what is known"},
    },
)
async def image(
    product_id: ProductId,
    position: Annotated[
        int,
        Path(ge=0, le=LARGEST_INT, description="Position of the image, as listed by the product."),
    ],
    here: Reads,
    if_none_match: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """Download a stored image of a product."""
    return await image_response(here, product_id, position, if_none_match)


class AnalyticsQuery(View):
    name: str
    about: str


class AnalyticsAnswer(View, row=Answer):
    """A table: names of the columns, and rows."""

    is_cut: bool = Field(description="There are more rows; ask for a larger `limit`.")
    complete_until: Time | None = Field(
        description="Nothing before this time is missing; null if nothing was copied yet."
    )


analytics_router = APIRouter(prefix="/analytics", tags=["analytics"])


@analytics_router.get("")
async def list_all(here: Operates) -> Listed[AnalyticsQuery]:
    """List the available queries."""
    return listed(Page(list(list_queries()), None), AnalyticsQuery.of)


@analytics_router.get("/answer")
async def answer(
    here: Operates,
    query: Annotated[PlainText, Query(min_length=1, max_length=100, examples=["price-changes"])],
    days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="Number of days to cover.")] = (
        DEFAULT_DAYS
    ),
    limit: Limit = 100,
) -> AnalyticsAnswer:
    """Run a query. Results are as fresh as the last `forager analytics sync`."""
    found = await analyse(here.settings, query, days=days, limit=limit)
    return AnalyticsAnswer.model_validate(found)
