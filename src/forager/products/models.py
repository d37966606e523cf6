"""Products: as lists show them, in full, their prices, and numbers about all of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from forager import checks
from forager.extract.product.product import Availability
from forager.operations.models import Amount, Interval, Moment, PlainText, ResponseModel, Time
from forager.operations.operation import API
from forager.products import offers, product, replacements, validation
from forager.products import service as values
from forager.products.filters import Filters
from forager.products.price_history import PriceEntry
from forager.products.product import ImageRecord

STORED = "stored"


_ABOUT_PRODUCT = {
    "failing_since": "Since when visits of its page fail after all retries, as with 404.",
    "gtin": "GTIN, EAN or UPC.",
    "currency": "As in ISO 4217.",
}


class Product(ResponseModel, row=product.ListedProduct, about=_ABOUT_PRODUCT):
    """A product as lists show it. Texts are as the shop has them, amounts are texts."""

    currency: str | None = Field(description="ISO 4217; null where the page does not say.")
    availability: str | None = Field(examples=["in_stock"])
    rating: Amount | None = Field(description="0 to 5.")
    category: str | None = Field(examples=["Home > Lighting"])
    problems: int = Field(description="Number of fields that broke a rule.")
    updated_at: Time = Field(description="When its content last changed.")


_Text = Annotated[PlainText, Field(max_length=1000)] | None
_Amount = Annotated[Decimal, Field(ge=0, lt=10**10, allow_inf_nan=False)] | None


class ProductQuery(BaseModel):
    """Filters of lists, searches and exports of products."""

    min_price: _Amount = Field(default=None, description="Minimum price.")
    max_price: _Amount = Field(default=None, description="Maximum price.")
    currency: Annotated[PlainText, Field(max_length=20, examples=["EUR"])] | None = Field(
        default=None, description="Only products priced in this currency."
    )
    availability: list[Availability] = Field(
        default_factory=list, max_length=20, description="Only with this stock, such as in_stock."
    )
    min_rating: Annotated[Decimal, Field(ge=0, le=5, allow_inf_nan=False)] | None = Field(
        default=None, description="Minimum rating, from 0 to 5."
    )
    brand: _Text = Field(default=None, description="Only products of this brand.")
    category: _Text = Field(
        default=None, description="Only categories that contain this: `Shoes`, `Men > Shoes`."
    )
    domain: Annotated[PlainText, Field(max_length=300)] | None = Field(
        default=None, description="Only this host, its subdomains, or the domain that covers it."
    )
    changed_since: Moment | None = Field(
        default=None, description="Only products changed since this time, UTC without a zone."
    )
    not_seen_since: Moment | None = Field(
        default=None,
        description="Only products last seen before this time that are no longer tracked, or that"
        " a later visit did not find.",
    )
    has_problems: bool | None = Field(
        default=None, description="Only products with, or without, problems."
    )
    sku: _Text = Field(default=None, description="Only products with this SKU.")
    gtin: Annotated[PlainText, Field(max_length=100)] | None = Field(
        default=None, description="Only products with this GTIN, EAN or UPC."
    )

    def filters(self) -> Filters:
        return Filters(**{**dict(self), "availability": tuple(self.availability)})


class ProductList(ResponseModel):
    """A part of a list, or of what a search has found."""

    items: list[Product]
    next_cursor: str | None = Field(description="Pass this as `cursor` to get the next page.")
    capped: bool = Field(description="Too many products match, so only some were ranked.")
    note: str | None = Field(description="A note about the query, to show to the user.")


class FieldEvidence(ResponseModel):
    """Why a field has its value."""

    confidence: float = Field(description="0 to 1.")
    origin: str | None = Field(examples=["json-ld:Product"])
    place: str | None = Field(
        default=None,
        description="Path of the element that shows the price stated by structured data.",
        examples=["div.product > span.price"],
    )


class ProductProblem(ResponseModel, row=validation.FieldViolation, hidden=("unconfirmed",)):
    """One rule that a field breaks; what an error or a doubt is about was not taken over."""


class ProductImage(ResponseModel, row=product.ImageRecord, hidden=("path",)):
    """One image, and what became of it."""

    file: str | None = Field(
        description="Path of the stored image in this API; null until it is stored."
    )

    @classmethod
    def build(cls, product_id: int, image: ImageRecord) -> ProductImage:
        file = f"{API}/products/{product_id}/images/{image.position}"
        return cls.of(image, file=file if image.status == STORED else None)


class PriceSpan(ResponseModel):
    """Its prices in the present currency."""

    changes: int
    lowest: Amount | None
    highest: Amount | None
    first: Amount | None
    since: Time | None


_OF_WORKER = ("attempt", "proxy_id", "worker_id", "started_at", "size")


class Visit(ResponseModel, row=product.AttemptRecord, hidden=_OF_WORKER):
    """One attempt to fetch or to read the page."""


class Extraction(ResponseModel, row=product.ExtractionRecord):
    """What one version of a parser made of one page."""

    problems: list[ProductProblem]
    archive: str | None = Field(description="Reference to the page in the archive.")


class ShownInstead(ResponseModel, row=replacements.Replacement, hidden=("product_id",)):
    """Another product that the page of a known product shows."""

    visits: int = Field(description="Visits in a row that showed it.")
    first_seen_at: Time = Field(description="Since when the page does not show the product.")


_ABOUT_PRODUCT_DETAIL = {
    "failing_since": "Since when visits of its page fail after all retries, as with 404.",
    "gtin": "GTIN, EAN or UPC.",
    "currency": "As in ISO 4217.",
    "rating": "From 0 to 5.",
}


class ProductDetail(ResponseModel, row=product.ProductRecord, about=_ABOUT_PRODUCT_DETAIL):
    """Everything that is known of a product; the newest visits first."""

    evidence: dict[str, FieldEvidence] = Field(description="By field: confidence and origin.")
    problems: list[ProductProblem]
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Recrawl interval of its task."
    )
    aliases: list[str] = Field(description="URLs that redirect to it.")
    replacement: ShownInstead | None = Field(
        description="The other product that its page shows now; its last price is kept."
    )
    images: list[ProductImage]
    history: PriceSpan
    attempts: list[Visit]
    extractions: list[Extraction]

    @classmethod
    def build(cls, details: values.ProductDetails) -> ProductDetail:
        images = [ProductImage.build(details.product.id, image) for image in details.images]
        return cls.of(details.product, details, images=images)


class PriceChange(ResponseModel, row=PriceEntry, hidden=("id", "product_id")):
    """An offer from one moment on."""

    percent: float | None = Field(description="Change since the last known price.")


class PriceMove(ResponseModel):
    """A product whose price differs from the one at a time."""

    product_id: int
    url: str
    domain: str
    name: str
    old_price: Amount = Field(description="Price at that time, or the first one since.")
    price: Amount
    currency: str | None
    percent: float = Field(description="Change in percent.")
    availability: str | None
    price_changed_at: Time | None


class PriceMoves(ResponseModel):
    """The largest price changes."""

    items: list[PriceMove]


class Replacement(ResponseModel, row=replacements.ListedReplacement):
    """A known product, and the other product that its page shows now."""

    name: str = Field(description="Name of the product that the page shows now.")
    url: str = Field(description="URL of the page that showed it, after redirects.")
    visits: int = Field(description="Visits in a row that showed it.")
    first_seen_at: Time = Field(description="Since when the page does not show the product.")


class ShopOffer(ResponseModel, row=offers.ShopOffer):
    """One offer of an article."""

    matched_by: str | None = Field(
        description="`gtin`, or `mpn` with the brand; null: the requested offer."
    )
    percent: float | None = Field(description="Percent above the lowest price in its currency.")


class ShopOffers(ResponseModel):
    """Offers of one article in all shops."""

    items: list[ShopOffer]


class ProductCounts(ResponseModel):
    products: int
    priced: int
    with_problems: int
    domains: int
    added_today: int = Field(description="In the last 24 hours.")
    changed_today: int
    price_changes_today: int
    unseen_for_a_week: int


class ValueCount(ResponseModel):
    """How many products have a value; null: they have none."""

    value: str | None
    products: int


class RuleCount(ResponseModel):
    field: str
    rule: str
    products: int


class ProductStats(ResponseModel):
    """Numbers about all products; the most frequent first."""

    counts: ProductCounts
    availability: list[ValueCount]
    currencies: list[ValueCount]
    largest_domains: list[ValueCount]
    problems: list[RuleCount]

    @classmethod
    def build(cls, stats: values.Stats) -> ProductStats:
        return cls(
            counts=ProductCounts.of(stats.counts),
            availability=_counts(stats.availability),
            currencies=_counts(stats.currencies),
            largest_domains=_counts(stats.largest_domains),
            problems=[RuleCount(field=f, rule=r, products=n) for f, r, n in stats.problems],
        )


class CheckFinding(ResponseModel, row=checks.Finding):
    """The result of a check."""

    level: checks.Level = Field(description="`fail`: data is wrong or work stops; `warn`: it may.")
    message: str = Field(description="What the check found.")
    topic: checks.Topic = Field(description="What the check examines.")
    impact: str | None = Field(description="Why a problem matters.")
    next_step: str | None = Field(description="What to do about a problem.")
    examples: list[int | str]


class CheckReport(ResponseModel, row=checks.Report):
    """The problems that checks found."""

    ok: bool = Field(description="Whether no check failed.")
    findings: list[CheckFinding] = Field(description="Problems that were found.")


def _counts(pairs: list[tuple[str | None, int]]) -> list[ValueCount]:
    return [ValueCount(value=value, products=number) for value, number in pairs]
