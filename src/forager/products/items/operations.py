"""Operations on items: lists, details, links, exchange rates and the own price list."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Field

from forager.amounts import price_text
from forager.operations.fields import FromFile
from forager.operations.models import (
    Amount,
    Listed,
    Moment,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    example,
    listed,
)
from forager.operations.operation import Columns, Context, Group
from forager.products.filters import Filters
from forager.products.items import item as service
from forager.products.items import own_prices, rates
from forager.products.items.store import IndexPoint as IndexRow
from forager.products.items.store import ItemOffer as OfferRow

items = Group(
    "items", "Items: the same article in all shops, best prices, price index.", page="Products"
)

_Named = Annotated[PlainText, Field(min_length=1, max_length=1000)]
Which = Annotated[
    _Named,
    Field(
        description="Key or GTIN of the item, or ID or URL of one of its products.",
        examples=["4006381333931"],
    ),
]
OfProduct = Annotated[_Named, Field(description="ID or URL of the product.", examples=["17"])]
Compared = Annotated[
    PlainText,
    Field(
        max_length=3, description="Compare in this currency, with imported rates.", examples=["EUR"]
    ),
]
Csv = Annotated[PlainText, Field(min_length=1, max_length=10_000_000), FromFile()]
_Brand = Annotated[_Named, Field(description="Only items with an offer of this brand.")]
_Category = Annotated[_Named, Field(description="Only items with an offer of this category.")]
_Domain = Annotated[_Named, Field(description="Only items with an offer of this domain.")]


def _money(amount: str | None, currency: str | None) -> str:
    return "" if amount is None else price_text(Decimal(amount), currency)


def _per_unit(each: Any) -> str:
    return f"{_money(each.unit_price, None)} / {each.unit}" if each.unit_price else ""


_ABOUT_ITEM = {
    "item": "Key of the item.",
    "offers": "Number of offers.",
    "shops": "Number of shops.",
    "available": "Offers that can be bought; 0: out of stock everywhere.",
    "currency": "Currency of the comparison; offers in others count only if there is a rate.",
    "best_price": "Lowest price of the offers that can be bought.",
    "best_shop": "Shop with the lowest price.",
    "best_product_id": "Product with the lowest price.",
    "highest_price": "Highest price of the offers that can be bought.",
    "spread": "Percent from the lowest to the highest price.",
    "unit_price": "Best price per unit, if the name or page of the offer states a quantity.",
    "unit": "`kg`, `l` or `piece`.",
    "own_price": "Price in the own price list.",
    "below_own": "Share of the shops with a lower price than the own one.",
    "days_unchanged": "Days since a price last changed.",
}


class Item(ResponseModel, row=service.Item, about=_ABOUT_ITEM):
    """The same article in all shops."""


class ItemOffer(
    ResponseModel,
    row=OfferRow,
    hidden=("item", "brand", "category", "quantity"),
    about={"matched_by": "`gtin`, `mpn` or `user`; null: the only offer."},
):
    """One offer of an item."""

    columns: ClassVar[Columns] = {
        "ID>": "product_id",
        "SHOP": "domain",
        "PRICE>": lambda each: _money(each.price, each.currency),
        "COMPARED>?": lambda each: (
            "" if each.compared_price == each.price else _money(each.compared_price, None)
        ),
        "VS LOWEST>": lambda each: f"{each.percent:+.1f} %" if each.percent else "",
        "PER UNIT>?": _per_unit,
        "STOCK": "availability",
        "MATCHED BY": "matched_by",
        "LAST SEEN": "last_seen_at",
        "NAME…": "name",
    }

    compared_price: Amount | None = Field(description="Price in the currency of the comparison.")
    percent: float | None = Field(description="Percent above the lowest price.")
    unit_price: Amount | None = Field(
        description="Price per unit, if its name or page states a quantity."
    )
    unit: str | None = Field(description="`kg`, `l` or `piece`.")


class LowestPrice(ResponseModel, row=service.LowestPrice, about={
    "price": "Lowest price; null: out of stock everywhere.", "shop": "Shop that had it.",
    "recorded_at": "From this time on.",
}):  # fmt: skip
    """A change of the lowest price of an item."""

    columns: ClassVar[Columns] = {
        "FROM": "recorded_at",
        "LOWEST>": lambda each: _money(each.price, None) or "out of stock",
        "SHOP": "shop",
    }


class ItemDetail(Item):
    """An item with all its offers."""

    shop_offers: list[ItemOffer] = Field(description="Offers, cheapest first.")
    history: list[LowestPrice] = Field(description="Changes of the lowest price, newest first.")

    @classmethod
    def build(cls, found: service.ItemDetails) -> ItemDetail:
        return cls.of(
            found.summary,
            shop_offers=[ItemOffer.of(each.offer, each) for each in found.offers],
            history=[LowestPrice.of(each) for each in found.lowest],
        )


ITEM_COLUMNS = {
    "NAME…": "name",
    "SHOPS>": "shops",
    "AVAILABLE>": "available",
    "BEST PRICE>": lambda each: _money(each.best_price, each.currency),
    "SHOP": "best_shop",
    "SPREAD %>": "spread",
    "PER UNIT>": _per_unit,
    "ITEM": "item",
}


@items.operation("list", "GET /items", columns=ITEM_COLUMNS, none="There are no such items.")
async def list_items(
    context: Context,
    paging: Paging,
    currency: Compared | None = None,
    brand: _Brand | None = None,
    category: _Category | None = None,
    domain: _Domain | None = None,
    min_shops: Annotated[int, Field(ge=1, le=10_000, description="Minimum shops.")] = 1,
    out_of_stock: Annotated[bool, Field(description="Only items that no shop has.")] = False,
    undercut: Annotated[bool, Field(description="Only with an offer below the own price.")] = False,
) -> Listed[Item]:
    """List items with their best prices, those in most shops first."""
    found = await service.list_items(
        context.database,
        Filters(brand=brand, category=category, domain=domain),
        currency=currency,
        min_shops=min_shops,
        out_of_stock=out_of_stock,
        undercut=undercut,
        **paging,
    )
    return listed(found, Item.of)


@items.operation("show", "GET /items/show", arguments=("which",))
async def show_item(
    context: Context,
    which: Which,
    currency: Compared | None = None,
    since: Annotated[Moment, Field(description="Only history since this time.")] | None = None,
) -> ItemDetail:
    """Show an item: its offers, cheapest first, and the history of its lowest price."""
    return ItemDetail.build(
        await service.show_item(context.database, which, currency=currency, since=since)
    )


class ItemStats(ResponseModel, row=service.ItemNumbers, about={
    "total": "Number of items.", "in_several_shops": "Items that several shops have.",
    "out_of_stock_everywhere": "Items that no shop has in stock.",
    "with_own_price": "Items in the own price list.",
    "undercut": "Items with a shop below the own price.",
    "shops_compared": "Prices of shops for items with an own price.",
    "shops_below": "Those of them that are below the own price.",
}):  # fmt: skip
    """Numbers about items; shops are compared with the own price list in its currency."""


@items.operation("stats", "GET /items/stats", cached=True)
async def stats(context: Context) -> ItemStats:
    """Show statistics of items and of the comparison with the own price list."""
    return ItemStats.of(await service.item_numbers(context.database))


class IndexPoint(ResponseModel, row=IndexRow, about={
    "category": "First step of the category; null: none.",
    "day": "End of this day, in UTC.",
    "value": "Price level: 100 on the first day.",
    "products": "Products with a price on both days.",
}):  # fmt: skip
    """The price level of a category."""


class PriceIndex(ResponseModel):
    """Price levels by category and day."""

    items: list[IndexPoint] = Field(description="Points by category, oldest first.")


@items.operation(
    "index",
    "GET /items/index",
    cached=True,
    columns={"CATEGORY": "category", "DAY": "day", "INDEX>": "value", "PRODUCTS>": "products"},
    none="There are no prices in this time.",
)
async def index(
    context: Context,
    since: Annotated[Moment, Field(description="First day; 90 days ago by default.")] | None = None,
    category: Annotated[_Named, Field(description="Only this category.")] | None = None,
    brand: Annotated[_Named, Field(description="Only products of this brand.")] | None = None,
    domain: Annotated[_Named, Field(description="Only products of this domain.")] | None = None,
) -> PriceIndex:
    """Show the price index of each category over time: the geometric mean of price changes."""
    filters = Filters(brand=brand, category=category, domain=domain)
    found = await service.price_index(context.database, filters, since=since)
    return PriceIndex(items=[IndexPoint.of(each) for each in found])


class ItemSuggestion(ResponseModel, row=service.ItemSuggestion, about={
    "product_id": "A product.", "name": "Its name.", "domain": "Its shop.",
    "other_id": "The product that may be the same article.", "other_name": "Its name.",
    "other_domain": "Its shop.",
}):  # fmt: skip
    """Two products that may be the same article."""


@items.operation(
    "suggestions",
    "GET /items/suggestions",
    columns={
        "PRODUCT>": "product_id", "NAME…": "name", "SHOP": "domain", "OTHER>": "other_id",
        "OTHER SHOP": "other_domain",
    },
    none="No suggestions.",
)  # fmt: skip
async def suggestions(context: Context, paging: Paging) -> Listed[ItemSuggestion]:
    """List products of different shops that may be the same article, to link or unlink them."""
    return listed(await service.suggest_links(context.database, **paging), ItemSuggestion.of)


class ItemLink(RequestModel):
    """A product, and the item that it becomes an offer of."""

    model_config = example(product="1", to="1")

    product: OfProduct
    to: Which


class ItemUnlink(RequestModel):
    """A product that becomes a separate item."""

    model_config = example(product="1")

    product: OfProduct


class RateFile(RequestModel):
    """Exchange rates."""

    model_config = example(csv="date,from,to,rate\n2026-01-01,CHF,EUR,1.06\n")

    csv: Annotated[Csv, Field(description="CSV with the columns date, from, to and rate.")]


OWN = "CSV with the columns gtin (or brand and mpn), price, currency and name."


class OwnPriceFile(RequestModel):
    """The own price list."""

    model_config = example(csv="gtin,price,currency\n4006381333931,45.00,EUR\n")

    csv: Annotated[Csv, Field(description=OWN)]


class LinkedItem(ResponseModel):
    """The item of a product."""

    item: str = Field(description="Key of the item.")


@items.operation("link", "POST /items/link", arguments=("product", "to"), done="linked to {item}")
async def link(context: Context, order: ItemLink) -> LinkedItem:
    """Make a product an offer of another item."""
    return LinkedItem(item=await service.link_offers(context.database, order.product, order.to))


@items.operation("unlink", "POST /items/unlink", arguments=("product",), done="now {item}")
async def unlink(context: Context, order: ItemUnlink) -> LinkedItem:
    """Make a product a separate item; it is not matched with other offers again."""
    return LinkedItem(item=await service.unlink_offer(context.database, order.product))


class ImportedLines(ResponseModel):
    """What a file contained."""

    imported: int = Field(description="Number of imported lines.")


@items.operation("rates", "PUT /items/rates", done="{imported} rates imported")
async def import_rates(context: Context, order: RateFile) -> ImportedLines:
    """Import exchange rates; a rate is valid until the next one of its currencies."""
    return ImportedLines(imported=await rates.import_rates(context.database, order.csv))


@items.operation("own-prices", "PUT /items/own-prices", done="{imported} own prices imported")
async def import_own_prices(context: Context, order: OwnPriceFile) -> ImportedLines:
    """Replace the own price list, which shops are compared with."""
    return ImportedLines(imported=await own_prices.import_own_prices(context.database, order.csv))
