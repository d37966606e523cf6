"""Products: as lists show them, in full, their prices, and numbers about all of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from forager.api.actions import API
from forager.api.models import Amount, Interval, Moment, Order, PlainText, Time, View, example
from forager.extract.product.record import Availability
from forager.products import audit, offers, record, validation
from forager.products import service as values
from forager.products.alerts import AlertKind, NewAlert
from forager.products.filters import Filters
from forager.products.price_history import PriceEntry
from forager.products.record import ImageRecord

STORED = "stored"


class Product(View, row=record.ListedProduct):
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
    has_problems: bool | None = Field(
        default=None, description="Only products with, or without, problems."
    )
    sku: _Text = Field(default=None, description="Only products with this SKU.")
    gtin: Annotated[PlainText, Field(max_length=100)] | None = Field(
        default=None, description="Only products with this GTIN, EAN or UPC."
    )

    def filters(self) -> Filters:
        return Filters(**{**dict(self), "availability": tuple(self.availability)})


class ProductList(View):
    """A part of a list, or of what a search has found."""

    items: list[Product]
    next_cursor: str | None = Field(description="Pass this as `cursor` to get the next page.")
    capped: bool = Field(description="Too many products match, so only some were ranked.")
    note: str | None = Field(description="A note about the query, to show to the user.")


class FieldEvidence(View):
    """Why a field has its value."""

    confidence: float = Field(description="0 to 1.")
    origin: str | None = Field(examples=["json-ld:Product"])
    place: str | None = Field(
        default=None,
        description="Path of the element that shows the price stated by structured data.",
        examples=["div.product > span.price"],
    )


class ProductProblem(View, row=validation.Problem, hidden=("held",)):
    """One rule that a field breaks; what an error or a doubt is about was not taken over."""


class ProductImage(View, row=record.ImageRecord, hidden=("path",)):
    """One image, and what became of it."""

    file: str | None = Field(
        description="Path of the stored image in this API; null until it is stored."
    )

    @classmethod
    def build(cls, product_id: int, image: ImageRecord) -> ProductImage:
        file = f"{API}/products/{product_id}/images/{image.position}"
        return cls.of(image, file=file if image.status == STORED else None)


class PriceSpan(View):
    """Its prices in the present currency."""

    changes: int
    lowest: Amount | None
    highest: Amount | None
    first: Amount | None
    since: Time | None


_OF_WORKER = ("attempt", "proxy_id", "worker_id", "started_at", "size")


class Visit(View, row=record.AttemptRecord, hidden=_OF_WORKER):
    """One attempt to fetch or to read the page."""


class Extraction(View, row=record.ExtractionRecord):
    """What one version of a parser made of one page."""

    problems: list[ProductProblem]
    archive: str | None = Field(description="Reference to the page in the archive.")


class ProductDetail(View, row=record.ProductRecord):
    """Everything that is known of a product; the newest visits first."""

    evidence: dict[str, FieldEvidence] = Field(description="By field: confidence and origin.")
    problems: list[ProductProblem]
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Recrawl interval of its task."
    )
    aliases: list[str] = Field(description="URLs that redirect to it.")
    images: list[ProductImage]
    history: PriceSpan
    attempts: list[Visit]
    extractions: list[Extraction]

    @classmethod
    def build(cls, details: values.ProductDetails) -> ProductDetail:
        images = [ProductImage.build(details.product.id, image) for image in details.images]
        return cls.of(details.product, details, images=images)


class PriceChange(View, row=PriceEntry, hidden=("id", "product_id")):
    """An offer from one moment on."""

    percent: float | None = Field(description="Change since the last known price.")


class PriceMove(View):
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


class PriceMoves(View):
    """The largest price changes."""

    items: list[PriceMove]


class ShopOffer(View, row=offers.ShopOffer):
    """One offer of an article."""

    matched_by: str | None = Field(
        description="`gtin`, or `mpn` with the brand; null: the requested offer."
    )
    percent: float | None = Field(description="Percent above the lowest price in its currency.")


class ShopOffers(View):
    """Offers of one article in all shops."""

    items: list[ShopOffer]


class ProductCounts(View):
    products: int
    priced: int
    with_problems: int
    domains: int
    added_today: int = Field(description="In the last 24 hours.")
    changed_today: int
    price_changes_today: int
    unseen_for_a_week: int


class ValueCount(View):
    """How many products have a value; null: they have none."""

    value: str | None
    products: int


class RuleCount(View):
    field: str
    rule: str
    products: int


class ProductStats(View):
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


class AuditFinding(View, row=audit.Finding):
    """Something that should not be; examples are ids or names."""

    examples: list[int | str]


class Audit(View, row=audit.Audit):
    """What an audit found; nothing is good."""

    findings: list[AuditFinding]


def _counts(pairs: list[tuple[str | None, int]]) -> list[ValueCount]:
    return [ValueCount(value=value, products=number) for value, number in pairs]


class AlertRule(View, row=record.AlertRule):
    """A condition on new offers, of one product or of a selection."""

    kind: AlertKind
    percent: Amount | None = Field(description="Minimum drop in percent.")
    amount: Amount | None = Field(description="Prices below this amount trigger the rule.")
    currency: str | None = Field(description="Only prices in this currency.")
    days: int | None = Field(description="Number of days to compare with.")
    selection: dict[str, str] = Field(description="Filters of products; empty: all products.")


_Named = Annotated[PlainText, Field(min_length=1, max_length=1000)] | None


class AlertOrder(Order):
    """A rule for one product, or for all that match `domain`, `brand`, `category` and `gtin`."""

    model_config = example(kind="price_drop", percent="5")

    kind: AlertKind
    percent: Decimal | None = Field(
        default=None, description="For `price_drop`: minimum drop in percent."
    )
    amount: Decimal | None = Field(
        default=None, description="For `price_below`: prices below this amount trigger the rule."
    )
    currency: Annotated[PlainText, Field(max_length=3)] | None = Field(
        default=None, description="Only prices in this currency."
    )
    days: int | None = Field(
        default=None,
        description="For `new_low`: compare with the prices of this many days. For `price_drop`:"
        " compare with their highest price instead of the last one.",
    )
    product: _Named = Field(default=None, description="ID or URL of one product.")
    domain: _Named = Field(default=None, description="Only products of this domain.")
    brand: _Named = Field(default=None, description="Only products of this brand.")
    category: _Named = Field(
        default=None, description="Only products with this in their category path."
    )
    gtin: _Named = Field(
        default=None, description="Only offers of this GTIN, EAN or UPC, in all shops."
    )

    def new(self) -> NewAlert:
        return NewAlert(**self.model_dump())
