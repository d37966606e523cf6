"""Products as CLI, API and dashboard show them: lists, details and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from types import NoneType

from forager.db.cursor import Page, check_limit, page_of
from forager.db.database import Connection, Database
from forager.fetch.domains.service import domain_name, domains_of
from forager.products.filters import (
    Filters,
    ListPlace,
    ProductOrder,
    checked,
    decode_place,
    encode_place,
)
from forager.products.lookup import find_product, unknown_product
from forager.products.product import (
    AttemptRecord,
    ExtractionRecord,
    ImageRecord,
    ListedProduct,
    ProductRecord,
)
from forager.products.store import counts, lists, prices, products
from forager.products.store.counts import CatalogCounts, ValueShare
from forager.products.store.prices import PriceSummary
from forager.products.store.redirects import select_aliases
from forager.products.store.replacements import Replacement, select_replacement

__all__ = ["CatalogCounts"]

# newest attempts and extractions of a product
SHOWN = 10
SHOWN_DOMAINS = 20

_BY_PRICE = (
    ProductOrder.CHEAPEST, ProductOrder.DEAREST, ProductOrder.DROPS, ProductOrder.RISES
)  # fmt: skip
# the types of values that rows are ordered by; products without a price come last
_VALUES: dict[ProductOrder, tuple[type, ...]] = {
    ProductOrder.NEWEST: (datetime,),
    ProductOrder.UPDATED: (datetime,),
    ProductOrder.NAME: (str,),
    ProductOrder.CHEAPEST: (Decimal, NoneType),
    ProductOrder.DEAREST: (Decimal, NoneType),
    ProductOrder.DROPS: (float, NoneType),
    ProductOrder.RISES: (float, NoneType),
}


async def list_products(
    database: Database,
    filters: Filters | None = None,
    *,
    order: ProductOrder = ProductOrder.NEWEST,
    cursor: str | None = None,
    limit: int = 20,
) -> Page[ListedProduct]:
    """Products, a page at a time; rows that are added meanwhile repeat or hide no other."""
    check_limit(limit)
    async with database.connection() as connection:
        wanted = await resolved(connection, filters)
        after = None
        if cursor is not None:
            after = decode_place(cursor, wanted, order, kinds=_VALUES[order])
        found = await _select(connection, wanted, order, after, limit + 1)
    return page_of(found, limit, lambda last: encode_place(_place(last, order), wanted, order))


async def _select(
    connection: Connection,
    filters: Filters,
    order: ProductOrder,
    after: ListPlace | None,
    limit: int,
) -> list[ListedProduct]:
    if order not in _BY_PRICE:
        return await lists.select_products(connection, filters, order, after=after, limit=limit)
    found: list[ListedProduct] = []
    if after is None or after.value is not None:
        found = await lists.select_products(connection, filters, order, after=after, limit=limit)
        after = None
    rest = limit - len(found)
    if rest:
        start = 0 if after is None else after.id
        found += await lists.select_by_id(
            connection, filters, after=start, limit=rest, unpriced=True
        )
    return found


def _place(last: ListedProduct, order: ProductOrder) -> ListPlace:
    change = None if last.price is None else last.price_change or 0.0
    values: dict[ProductOrder, datetime | Decimal | str | float | None] = {
        ProductOrder.NEWEST: last.created_at,
        ProductOrder.UPDATED: last.updated_at,
        ProductOrder.NAME: last.name[:200],
        ProductOrder.CHEAPEST: last.price,
        ProductOrder.DEAREST: last.price,
        ProductOrder.DROPS: change,
        ProductOrder.RISES: change,
    }
    return ListPlace(values[order], last.id)


async def resolved(connection: Connection, filters: Filters | None) -> Filters:
    """Checked filters, with the ids of their domain."""
    wanted = checked(filters or Filters())
    if wanted.domain is None:
        return wanted
    meant = await domains_of(connection, wanted.domain)
    return replace(wanted, domain=domain_name(wanted.domain), domain_ids=tuple(meant))


@dataclass(frozen=True, slots=True)
class ProductDetails:
    """Everything about a product; lists begin with the newest entry."""

    product: ProductRecord
    # URLs that redirect to it
    aliases: list[str]
    # the other product that its page shows now
    replacement: Replacement | None
    images: list[ImageRecord]
    history: PriceSummary
    attempts: list[AttemptRecord]
    extractions: list[ExtractionRecord]


async def show_product(database: Database, which: str) -> ProductDetails:
    """A product with its prices, images and extractions, by its ID or URL; raises NotFound."""
    async with database.connection() as connection:
        product_id = await find_product(connection, which)
        product = await products.select_product(connection, product_id)
        if product is None:
            raise unknown_product(which)
        task_id = product.task_id or 0
        return ProductDetails(
            product=product,
            aliases=await select_aliases(connection, product_id),
            replacement=await select_replacement(connection, product_id),
            images=await products.select_images(connection, product_id),
            history=await prices.select_summary(connection, product_id),
            attempts=await products.select_attempts(connection, task_id, SHOWN),
            extractions=await products.select_extractions(connection, task_id, SHOWN),
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers of all products; pairs of a value and its number, largest first."""

    counts: CatalogCounts
    availability: list[tuple[str | None, int]]
    currencies: list[tuple[str | None, int]]
    largest_domains: list[tuple[str | None, int]]
    # field, rule, number of violations
    problems: list[tuple[str, str, int]]


async def catalog_counts(database: Database) -> CatalogCounts:
    """Numbers of the catalog, and what changed today."""
    return await database.run(counts.select_counts)


async def product_stats(database: Database) -> Stats:
    """How many products have which values, by column."""
    async with database.connection() as connection:
        shares = await counts.count_shares(connection)
        return Stats(
            counts=await counts.select_counts(connection),
            availability=_pairs(shares, "availability"),
            currencies=_pairs(shares, "currency"),
            largest_domains=_pairs(shares, "domain")[:SHOWN_DOMAINS],
            problems=await counts.count_by_rule(connection),
        )


async def list_currencies(database: Database) -> list[str]:
    """The currencies of prices, the most common first."""
    return [currency for currency, _ in await database.run(counts.count_currencies)]


def _pairs(shares: Sequence[ValueShare], column: str) -> list[tuple[str | None, int]]:
    return [(share.value, share.products) for share in shares if share.column == column]
