"""Products: as lists show them, in full, their prices, and numbers about all of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from forager import checks
from forager.extract.product.product import Availability
from forager.operations.models import Amount, Interval, Moment, PlainText, ResponseModel, Time
from forager.operations.operation import API
from forager.products import offers, product, replacements
from forager.products import service as values
from forager.products.filters import Filters
from forager.products.price_history import PriceEntry
from forager.products.product import ImageRecord
from forager.products.validation.fields import FieldViolation

STORED = "stored"


_ABOUT_PRODUCT = {
    "failing_since": "Since when visits of its page fail after all retries, as with 404.",
    "gtin": "GTIN, EAN or UPC.",
    "currency": "As in ISO 4217.",
}


class Product(ResponseModel, row=product.ListedProduct, about=_ABOUT_PRODUCT):
    """A product as lists show it. Texts are as the shop has them, amounts are texts."""

    currency: str | None = Field(description="ISO 4217; null where the page does not say.")
    availability: str | None = Field(
        description="Availability, such as `in_stock`.", examples=["in_stock"]
    )
    rating: Amount | None = Field(description="0 to 5.")
    category: str | None = Field(
        description="Category path of the product.", examples=["Home > Lighting"]
    )
    problems: int = Field(description="Number of fields that broke a rule.")
    price_change: float | None = Field(
        description="The last change of the price, in percent; null if it never changed."
    )
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

    items: list[Product] = Field(description="The products of this page.")
    next_cursor: str | None = Field(description="Pass this as `cursor` to get the next page.")
    capped: bool = Field(description="Too many products match, so only some were ranked.")
    note: str | None = Field(description="A note about the query, to show to the user.")


class FieldEvidence(ResponseModel):
    """Why a field has its value."""

    confidence: float = Field(description="0 to 1.")
    origin: str | None = Field(
        description="Where the value was found.", examples=["json-ld:Product"]
    )
    place: str | None = Field(
        default=None,
        description="Path of the element that shows the price stated by structured data.",
        examples=["div.product > span.price"],
    )


_ABOUT_PRODUCT_PROBLEM = {
    "severity": "Severity of the problem.",
    "message": "How the value breaks the rule.",
}


class ProductProblem(
    ResponseModel, row=FieldViolation, hidden=("unconfirmed",), about=_ABOUT_PRODUCT_PROBLEM
):
    """One rule that a field breaks; what an error or a doubt is about was not taken over."""


_ABOUT_PRODUCT_IMAGE = {
    "type": "Type of image.",
    "alt_text": "Alternative text of the image.",
    "status": "State of the download: `pending`, `stored`, `refused` or `failed`.",
    "problem": "Why the image was not stored.",
    "width": "Width in pixels.",
    "height": "Height in pixels.",
    "file_size": "Size of the stored file in bytes.",
}


class ProductImage(
    ResponseModel,
    row=product.ImageRecord,
    hidden=("path",),
    about=_ABOUT_PRODUCT_IMAGE,
    thing="image",
):
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

    changes: int = Field(description="Number of price changes.")
    lowest: Amount | None = Field(description="Lowest price.")
    highest: Amount | None = Field(description="Highest price.")
    first: Amount | None = Field(description="First price.")
    since: Time | None = Field(description="Start of the history.")


_OF_WORKER = ("attempt", "proxy_id", "worker_id", "started_at", "size")


class Visit(
    ResponseModel,
    row=product.AttemptRecord,
    hidden=_OF_WORKER,
    about={
        "outcome": "Result of the attempt, such as `ok`, `unchanged`, `retry` or `failed`.",
        "error_message": "Why the attempt failed; null: it did not.",
    },
):
    """One attempt to fetch or to read the page."""


_ABOUT_EXTRACTION = {
    "confidence": "Confidence from 0 to 1.",
    "role": "`active`, or `canary` for a version that is tried beside it.",
    "outcome": "`ok`, `suspect` (stored but flagged), `incomplete` (no product) or `failed`.",
    "error_message": "Why the parser failed; null: it did not.",
}


class Extraction(ResponseModel, row=product.ExtractionRecord, about=_ABOUT_EXTRACTION):
    """What one version of a parser made of one page."""

    problems: list[ProductProblem] = Field(description="Rules that the data breaks.")
    archive: str | None = Field(description="Reference to the page in the archive.")


class ShownInstead(
    ResponseModel, row=replacements.Replacement, hidden=("product_id",), thing="product"
):
    """Another product that the page of a known product shows."""

    visits: int = Field(description="Visits in a row that showed it.")
    first_seen_at: Time = Field(description="Since when the page does not show the product.")


_ABOUT_PRODUCT_DETAIL = {
    "failing_since": "Since when visits of its page fail after all retries, as with 404.",
    "gtin": "GTIN, EAN or UPC.",
    "currency": "As in ISO 4217.",
    "rating": "From 0 to 5.",
    "description": "Description of the product.",
    "variants": "Variants of the product.",
    "metadata": "Further data from the page.",
    "task_status": "Status of its task.",
    "task_hold": "The hold on its task, if there is one.",
    "task_error": "Last error of its task.",
}


class ProductDetail(
    ResponseModel, row=product.ProductRecord, about=_ABOUT_PRODUCT_DETAIL, thing="product"
):
    """Everything that is known of a product; the newest visits first."""

    evidence: dict[str, FieldEvidence] = Field(description="By field: confidence and origin.")
    problems: list[ProductProblem] = Field(description="Rules that the data breaks.")
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Recrawl interval of its task."
    )
    aliases: list[str] = Field(description="URLs that redirect to it.")
    replacement: ShownInstead | None = Field(
        description="The other product that its page shows now; its last price is kept."
    )
    images: list[ProductImage] = Field(description="Images of the product.")
    history: PriceSpan = Field(description="Price history.")
    attempts: list[Visit] = Field(description="The latest attempts to fetch or parse the page.")
    extractions: list[Extraction] = Field(
        description="What parsers read from the page, newest first."
    )

    @classmethod
    def build(cls, details: values.ProductDetails) -> ProductDetail:
        images = [ProductImage.build(details.product.id, image) for image in details.images]
        return cls.of(details.product, details, images=images)


class PriceChange(
    ResponseModel,
    row=PriceEntry,
    hidden=("id", "product_id"),
    about={
        "recorded_at": "When the price was recorded, or first seen.",
        "standing": "`recorded`; if withheld: `open`, `confirmed`, `not_confirmed` or `wrong`.",
        "reason": "Why the price was withheld.",
        "visits": "Visits in a row that showed the withheld price.",
    },
):
    """An offer from one moment on."""

    percent: float | None = Field(description="Change since the last known price.")


class PriceMove(ResponseModel, thing="product"):
    """A product whose price differs from the one at a time."""

    product_id: int
    url: str
    domain: str
    name: str
    old_price: Amount = Field(description="Price at that time, or the first one since.")
    price: Amount
    currency: str | None
    amount: Amount = Field(description="Change in the currency; negative: a drop.")
    percent: float = Field(description="Change in percent.")
    availability: str | None
    price_changed_at: Time | None


class PriceMoves(ResponseModel):
    """The largest price changes."""

    items: list[PriceMove] = Field(description="Price changes, the largest first.")


_ABOUT_REPLACEMENT = {
    "product_url": "URL of the known product.",
    "product_name": "Name of the known product.",
}


class Replacement(ResponseModel, row=replacements.ListedReplacement, about=_ABOUT_REPLACEMENT):
    """A known product, and the other product that its page shows now."""

    name: str = Field(description="Name of the product that the page shows now.")
    url: str = Field(description="URL of the page that showed it, after redirects.")
    visits: int = Field(description="Visits in a row that showed it.")
    first_seen_at: Time = Field(description="Since when the page does not show the product.")


class ShopOffer(ResponseModel, row=offers.ShopOffer, thing="product"):
    """One offer of an article."""

    matched_by: str | None = Field(
        description="`gtin`, or `mpn` with the brand; null: the requested offer."
    )
    percent: float | None = Field(description="Percent above the lowest price in its currency.")


class ShopOffers(ResponseModel):
    """Offers of one article in all shops."""

    items: list[ShopOffer] = Field(description="Offers of the shops.")


class ProductCounts(ResponseModel):
    """Numbers of the catalog."""

    products: int = Field(description="Number of products.")
    priced: int = Field(description="Products with a price.")
    with_problems: int = Field(description="Products that break a rule.")
    domains: int = Field(description="Number of domains.")
    added_today: int = Field(description="In the last 24 hours.")
    changed_today: int = Field(description="Products whose content changed in 24 hours.")
    price_changes_today: int = Field(description="Price changes in 24 hours.")
    unseen_for_a_week: int = Field(description="Products not seen for a week.")


class ValueCount(ResponseModel):
    """How many products have a value; null: they have none."""

    value: str | None = Field(description="The value; null: none.")
    products: int = Field(description="Number of products.")


class RuleCount(ResponseModel):
    """How many products break a rule."""

    field: str
    rule: str
    products: int = Field(description="Number of products that break the rule.")


class ProductStats(ResponseModel):
    """Numbers about all products; the most frequent first."""

    counts: ProductCounts = Field(description="Numbers of products.")
    availability: list[ValueCount] = Field(description="Products by availability.")
    currencies: list[ValueCount] = Field(description="Products by currency.")
    largest_domains: list[ValueCount] = Field(description="Domains with the most products.")
    problems: list[RuleCount] = Field(description="Products by broken rule.")

    @classmethod
    def build(cls, stats: values.Stats) -> ProductStats:
        return cls(
            counts=ProductCounts.of(stats.counts),
            availability=_counts(stats.availability),
            currencies=_counts(stats.currencies),
            largest_domains=_counts(stats.largest_domains),
            problems=[RuleCount(field=f, rule=r, products=n) for f, r, n in stats.problems],
        )


_ABOUT_CHECK_FINDING = {
    "check": "Name of the check.",
    "count": "Number of rows or files with the problem.",
}


class CheckFinding(ResponseModel, row=checks.Finding, about=_ABOUT_CHECK_FINDING):
    """The result of a check."""

    level: checks.Level = Field(description="`fail`: data is wrong or work stops; `warn`: it may.")
    message: str = Field(description="What the check found.")
    topic: checks.Topic = Field(description="What the check examines.")
    impact: str | None = Field(description="Why a problem matters.")
    next_step: str | None = Field(description="What to do about a problem.")
    examples: list[int | str] = Field(description="Examples, as IDs or names.")


_ABOUT_CHECK_REPORT = {"checks": "Results of the checks.", "at": "When the checks ran."}


class CheckReport(ResponseModel, row=checks.Report, about=_ABOUT_CHECK_REPORT):
    """The problems that checks found."""

    ok: bool = Field(description="Whether no check failed.")
    findings: list[CheckFinding] = Field(description="Problems that were found.")


def _counts(pairs: list[tuple[str | None, int]]) -> list[ValueCount]:
    return [ValueCount(value=value, products=number) for value, number in pairs]
