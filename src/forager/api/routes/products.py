"""Products: lists, details, prices, images, exports and audits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response, StreamingResponse

from forager.api.limits import RowId
from forager.api.services import OperatorServices, ReaderServices
from forager.api.streams import IMAGE_TYPES, MEDIA_TYPES, download, file_responses, image_response
from forager.errors import InvalidInput
from forager.operations.models import LARGEST_INT, Moment, PlainText
from forager.products import models as views
from forager.products.audit import last_audit
from forager.products.export import (
    SINCE,
    ExportContent,
    ProductExport,
    ProductsExportFormat,
    export_stream,
)

router = APIRouter(prefix="/products", tags=["products"])

ProductId = Annotated[RowId, Path(description="ID of the product.")]
Since = Annotated[Moment | None, Query(description="UTC without a zone.")]


Wanted = Annotated[views.ProductQuery, Query()]


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses=file_responses(kind.partition(";")[0] for kind in MEDIA_TYPES.values()),
)
async def export(
    services: ReaderServices,
    wanted: Wanted,
    format_: Annotated[
        ProductsExportFormat, Query(alias="format", description="Format of the file.")
    ] = ProductsExportFormat.JSONL,
    content: Annotated[
        ExportContent,
        Query(description="Products, or their prices, other offers, items or the price index."),
    ] = ExportContent.PRODUCTS,
    since: Annotated[
        Since, Query(description="With `history`, `changes` and `index`: since this time.")
    ] = None,
    columns: Annotated[
        PlainText | None,
        Query(max_length=1000, description="Column names separated by commas, or `all`."),
    ] = None,
) -> Response:
    """Export all matching products, oldest first, as CSV, JSON lines or Parquet."""
    if since is not None and content not in SINCE:
        raise InvalidInput(f"`since` is for {', '.join(SINCE)}", hint="Or give `changed_since`.")
    named = tuple(filter(None, (name.strip() for name in (columns or "").split(","))))
    asked = ProductExport(format_, wanted.filters(), content, since, named)
    asked.schema()  # unknown columns are an error before the first byte is sent
    parts = export_stream(services.database, asked)
    return await download(parts, f"products.{format_}", MEDIA_TYPES[format_])


@router.get("/audit")
async def show_audit(services: ReaderServices) -> views.CheckReport:
    """Show the findings of the last audit; workers run one every day."""
    return views.CheckReport.of(await last_audit(services.database))


@router.post("/audit")
async def run_audit(services: OperatorServices) -> views.CheckReport:
    """Check the catalog for contradictory or stale data now, and return the findings."""
    return views.CheckReport.of(await services.audit())


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
    services: ReaderServices,
    if_none_match: Annotated[
        str,
        Header(max_length=1000, description="ETag of a known answer: 304 if it has not changed."),
    ] = "",
) -> Response:
    """Download a stored image of a product."""
    return await image_response(services, product_id, position, if_none_match)
