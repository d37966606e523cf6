"""Products: search, details, price history, exports and alert rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from fastapi import Header, Path
from markupsafe import Markup
from starlette.responses import Response

from forager.api.limits import Paging, RowId
from forager.api.streams import MEDIA_TYPES, download, image_response
from forager.errors import InvalidInput, NotAllowed
from forager.extract.product.product import Availability, FieldName
from forager.products import service as products
from forager.products.export import (
    ExportContent,
    ProductExport,
    ProductsExportFormat,
    export_stream,
)
from forager.products.filters import Filters, ProductOrder
from forager.products.lookup import thumbnails
from forager.products.offers import ShopOffer, compare_offers
from forager.products.price_history import PriceEntry, price_history, recent_prices
from forager.products.product import ImageRecord, ProductRecord
from forager.products.search import ProductSearchPage, list_or_search
from forager.products.service import ProductDetails, list_currencies, show_product
from forager.tasks.alarms import accept_replacement
from forager.tasks.selection import Selection
from forager.web.formats import humanize, money, number
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, cached, fixed_order_of, new_router, page
from forager.web.price_chart import price_chart
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

router = new_router()

PAGE_SIZE = 20
LARGEST_PRICE = 1e10 - 1
FILTERS = (
    "min_price", "max_price", "currency", "availability", "brand", "category", "domain",
    "changed_since", "problems", "min_rating",
)  # fmt: skip


@page(router, "/products")
async def list_products(visit: ReaderVisit) -> WebPage:
    form = visit.asked
    found, currencies, problem = ProductSearchPage([], None), list[str](), None
    try:
        found, currencies = (await cached(visit, lambda: _found(visit, form))).answer
    except InvalidInput as error:
        problem = error
    ids = [each.id for each in found.items]
    prices = await recent_prices(visit.database, ids)
    return WebPage(
        "products.html",
        found=found,
        currencies=currencies,
        order=fixed_order_of(visit, () if form.text("q") else SORTS),
        thumbnails=await thumbnails(visit.database, ids),
        prices={number: list(map(float, few)) for number, few in prices.items()},
        problem=problem,
        is_filtered=any(form.text(name) for name in (*FILTERS, "q")),
        narrowed=[name for name in FILTERS if form.text(name)],
        availabilities=list(Availability),
        next_url=visit.following(found.next_cursor),
        query=visit.request.url.query,
    )


# declared before the page of a product, whose path would match it
@router.get("/products/export", response_model=None)
async def export(visit: ReaderVisit) -> Response:
    form = visit.asked
    kind = (
        ProductsExportFormat.JSONL if form.text("format") == "jsonl" else ProductsExportFormat.CSV
    )
    content = next((c for c in ExportContent if c == form.text("content")), ExportContent.PRODUCTS)
    days = form.number("days", least=1, most=3650) if content is ExportContent.CHANGES else None
    since = None if days is None else datetime.now(UTC) - timedelta(days=days)
    parts = export_stream(visit.database, ProductExport(kind, filters_of(form), content, since))
    return await download(parts, f"{content}.{kind}", MEDIA_TYPES[kind])


@page(router, "/products/{product_id}")
async def show(visit: ReaderVisit, product_id: RowId) -> WebPage:
    return WebPage(
        "product.html",
        view=await load_product(visit, product_id),
        changes_shown=CHANGES_SHOWN,
        images_shown=IMAGES_SHOWN,
        variants_shown=VARIANTS_SHOWN,
    )


@page(router, "/products/{product_id}/history")
async def history(visit: ReaderVisit, product_id: RowId) -> WebPage:
    details = await products.show_product(visit.database, str(product_id))
    found = await price_history(visit.database, str(product_id), **visit.paging)
    return WebPage("product_history.html", product=details.product, changes=found)


@router.get("/products/{product_id}/images/{position}", response_model=None)
async def image(
    visit: ReaderVisit,
    product_id: RowId,
    position: Annotated[int, Path(ge=0, le=2**31 - 1)],
    if_none_match: Annotated[str, Header(max_length=1000)] = "",
) -> Response:
    """The stored image with the headers of the API: its content is untrusted."""
    return await image_response(visit, product_id, position, if_none_match)


@action(router, "/products/{product_id}/recrawl")
async def recrawl(visit: OperatorVisit, form: Submitted, product_id: RowId) -> Done:
    details = await products.show_product(visit.database, str(product_id))
    if details.product.task_id is None:
        raise NotAllowed("this product is no longer tracked", hint="Track its page again.")
    done = await visit.tasks.recrawl(Selection(ids=(details.product.task_id,)))
    text = "Recrawl started." if done.due else "A visit is already in progress."
    if done.on_hold:
        text = "The task is on hold. It is visited when the task is resumed."
    return Done(text, to=f"/products/{product_id}")


@action(router, "/products/{product_id}/accept")
async def accept(visit: OperatorVisit, form: Submitted, product_id: RowId) -> Done:
    accepted = await accept_replacement(visit.database, str(product_id))
    text = f"{accepted.name} is stored at the next visit."
    return Done(text, to=f"/products/{product_id}")


async def _found(visit: WebVisit, form: Form) -> tuple[ProductSearchPage, list[str]]:
    """Products, and the currencies of the catalog if the list is limited to the first of them."""
    paging = Paging(cursor=visit.paging["cursor"], limit=PAGE_SIZE)
    order = SORTS.get(form.text("sort"))
    words, wanted = form.optional("q"), filters_of(form)
    currencies: list[str] = []
    if order in BY_PRICE and not words and wanted.currency is None:
        # prices in different currencies cannot be compared
        found = await list_currencies(visit.database)
        if len(found) > 1:
            currencies, wanted = found, replace(wanted, currency=found[0])
    page = await list_or_search(visit.database, words, wanted, order, engine=visit.engine, **paging)
    return page, currencies


def filters_of(form: Form) -> Filters:
    return Filters(
        min_price=amount_of(form, "min_price"),
        max_price=amount_of(form, "max_price"),
        min_rating=amount_of(form, "min_rating"),
        currency=form.optional("currency"),
        availability=tuple(form.texts("availability")),
        brand=form.optional("brand"),
        category=form.optional("category"),
        domain=form.optional("domain"),
        changed_since=_day(form.text("changed_since")),
        has_problems={"yes": True, "no": False}.get(form.text("problems")),
    )


def amount_of(form: Form, name: str) -> Decimal | None:
    return None if form.amount(name, most=LARGEST_PRICE) is None else Decimal(form.text(name))


def _day(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a day", hint="Write it as 2026-01-31.") from None


# the order of each table header
SORTS = {
    "name": ProductOrder.NAME,
    "price": ProductOrder.CHEAPEST,
    "-price": ProductOrder.DEAREST,
    "change": ProductOrder.DROPS,
    "-change": ProductOrder.RISES,
    "-updated": ProductOrder.UPDATED,
}
BY_PRICE = (ProductOrder.CHEAPEST, ProductOrder.DEAREST)


CHANGES_DRAWN = 300
CHANGES_SHOWN = 10
# time ranges of the chart, in days
RANGES = {30: "30 days", 90: "90 days", 365: "1 year"}
VARIANTS_SHOWN = 50
IMAGES_SHOWN = 12

# shown elsewhere on the page
_ELSEWHERE = (FieldName.IMAGES, FieldName.VARIANTS)


@dataclass(frozen=True, slots=True)
class Shown:
    """A field: its value as text, its confidence (0 to 1), and its origin on the page."""

    name: str
    value: str | None
    confidence: float | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class ProductView:
    """Everything that the page of a product shows."""

    details: ProductDetails
    fields: list[Shown]
    changes: list[PriceEntry]
    # whether there are more changes than are drawn
    is_cut: bool
    chart: Markup
    # URL, name, whether it is shown, and None for each time range of the chart
    ranges: list[tuple[str, str, bool, None]]
    # the same article in this and other shops; empty if there are no others
    offers: list[ShopOffer]

    @property
    def product(self) -> ProductRecord:
        return self.details.product

    @property
    def found(self) -> list[Shown]:
        return [each for each in self.fields if each.value is not None]

    @property
    def missing(self) -> list[Shown]:
        """Fields that the page does not state."""
        return [each for each in self.fields if each.value is None]

    @property
    def image(self) -> ImageRecord | None:
        """The image beside the price."""
        return next((each for each in self.details.images if each.status == "stored"), None)


async def load_product(visit: WebVisit, product_id: int) -> ProductView:
    details = await show_product(visit.database, str(product_id))
    found = await price_history(visit.database, str(product_id), limit=CHANGES_DRAWN)
    offers = await compare_offers(visit.database, str(product_id))
    until = details.product.last_seen_at
    days = visit.asked.number("days", most=max(RANGES))
    return ProductView(
        details=details,
        fields=[_shown(details.product, name) for name in FieldName if name not in _ELSEWHERE],
        changes=found.items,
        is_cut=found.next_cursor is not None,
        chart=price_chart(_drawn(found.items, until, days), until),
        ranges=_ranges(product_id, found.items, until, days),
        offers=offers if len(offers) > 1 else [],
    )


def _drawn(
    newest_first: Sequence[PriceEntry], until: datetime, days: int | None
) -> list[PriceEntry]:
    """Prices of the last days, beginning with the one that was valid then."""
    if not days:
        return list(newest_first)
    since = until - timedelta(days=days)
    before = next((each for each in newest_first if each.recorded_at <= since), None)
    within = [each for each in newest_first if each.recorded_at > since]
    return [*within, *([] if before is None else [replace(before, recorded_at=since)])]


def _ranges(
    product_id: int, newest_first: Sequence[PriceEntry], until: datetime, days: int | None
) -> list[tuple[str, str, bool, None]]:
    """The time ranges that are shorter than the history."""
    length = (until - newest_first[-1].recorded_at).days if newest_first else 0
    base = f"/products/{product_id}"
    shorter = [(number, name) for number, name in RANGES.items() if number < length]
    tabs = [(f"{base}?days={number}", name, number == days, None) for number, name in shorter]
    return [*tabs, (base, "all", not days, None)] if tabs else []


def _shown(product: ProductRecord, name: FieldName) -> Shown:
    evidence = product.evidence.get(name.value, {})
    return Shown(
        name.value, _value(product, name), evidence.get("confidence"), evidence.get("origin")
    )


def _value(product: ProductRecord, name: FieldName) -> str | None:
    value = getattr(product, name.value, None) or product.metadata.get(name.value)
    if value is None:
        return None
    match name:
        case FieldName.PRICE | FieldName.LIST_PRICE:
            return money(value, product.currency)
        case FieldName.AVAILABILITY:
            return humanize(value)
        case FieldName.RATING | FieldName.REVIEW_COUNT:
            return number(value)
        case _:
            return str(value)
