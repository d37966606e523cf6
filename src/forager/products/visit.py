"""The result of one visit to a product's page: its outcome, its row, and its extraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from forager.archive.segment import ArchiveRef
from forager.db.text_search import configuration_of
from forager.extract.product.currency import share_sign
from forager.extract.product.merge import ANY_TEXT
from forager.extract.product.places import LEARNED, STATING
from forager.extract.product.product import FieldName, Product
from forager.parsers.model import ORIGIN as MODEL
from forager.parsers.reading import Parsed
from forager.products.content import (
    SKU_LENGTH,
    content_hash,
    content_of,
    line,
    marks_of,
    offer_of,
    text,
    variants_of,
)
from forager.products.json_columns import (
    KEPT_LIST,
    evidence_json,
    fields_json,
    problems_json,
    to_json,
    unconfirmed_values,
)
from forager.products.store.products import NewExtraction
from forager.products.store.writes import KeptFields, KnownProduct, ProductRow
from forager.products.validation.fields import Checked, FieldViolation, Severity, check
from forager.products.validation.plausibility import (
    Offer,
    OfferCheck,
    Past,
    check_offer,
    check_variants,
)

# stored as metadata
_DETAILS = ("mpn", "product_id", "variant_id", "quantity")
_ERROR_LENGTH = 2_000
_URL_LENGTH = 20_000
_NAME_LENGTH = 100
_PROBLEM_LENGTH = 500


class ReadOutcome(StrEnum):
    """How reading a page ended."""

    OK = "ok"
    # stored, but marked
    SUSPECT = "suspect"
    # no product: only the extraction is stored
    INCOMPLETE = "incomplete"
    # the parser broke
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPage(Parsed):
    """The parsed page of one task."""

    task_id: int
    domain_id: int
    url: str
    url_hash: bytes
    final_url: str | None = None
    ref: ArchiveRef | None = None
    # or "canary": only an extraction is written
    role: str = "active"

    @classmethod
    def of(cls, parsed: Parsed, **values: Any) -> ParsedPage:
        return cls(**{name: getattr(parsed, name) for name in Parsed.__slots__}, **values)


@dataclass(frozen=True, slots=True)
class ProductVisit:
    """A checked page. Whether its price is accepted depends on the known product."""

    page: ParsedPage
    checked: Checked
    domain_currency: str | None
    # as JSON, for the product and the extraction
    evidence: str = "{}"
    offer_check: OfferCheck | None = None

    @property
    def is_product(self) -> bool:
        return self.page.product is not None and self.checked.incomplete is None

    @property
    def problems(self) -> tuple[FieldViolation, ...]:
        return (*self.checked.problems, *(self.offer_check.problems if self.offer_check else ()))

    @property
    def outcome(self) -> ReadOutcome:
        if self.page.product is None:
            return ReadOutcome.FAILED
        if self.checked.incomplete is not None:
            return ReadOutcome.INCOMPLETE
        bad = any(problem.severity is not Severity.WARNING for problem in self.problems)
        bad = bad or bool(self.page.problems or self.page.fallbacks)
        return ReadOutcome.SUSPECT if bad else ReadOutcome.OK

    @property
    def reason(self) -> str | None:
        if self.page.product is None:
            return text(self.page.error, _ERROR_LENGTH) or "the parser broke, and said nothing"
        return self.checked.incomplete

    def _is_misplaced(self, seen: Offer, past: Past) -> bool:
        """Whether a price from any text of the page would replace one from a known place."""
        said = self.checked.product.evidence.get(FieldName.PRICE)
        if said is None or not is_weak(said.origin) or is_weak(past.price_origin):
            return False
        return seen.price != past.offer.price

    def is_decided_again(self, offer: Offer, origin: str | None) -> bool:
        """Whether the template of the domain, and not the shop, makes the price another one.

        The stored price was that of structured data, which still states it: as the list price.
        """
        said = self.checked.product.evidence.get(FieldName.PRICE)
        if said is None or not said.origin.startswith(LEARNED) or origin is None:
            return False
        stated = origin.partition(":")[0] in STATING
        return stated and self.checked.product.list_price == offer.price

    def keeping(self, known: KeptFields) -> ProductVisit:
        """The visit with the known values of fields that its parser could not read."""
        names = (name for name in KeptFields.__slots__ if name in self.page.withheld)
        kept = {name: getattr(known, name) for name in names}
        return replace(
            self, checked=replace(self.checked, product=replace(self.checked.product, **kept))
        )

    def with_codes(self, sku: str | None, gtin: str | None) -> ProductVisit:
        """The visit with the known codes where its page has none: they are not erased."""
        product = self.checked.product
        if (product.sku or not sku) and (product.gtin or not gtin):
            return self
        product = replace(product, sku=product.sku or sku, gtin=product.gtin or gtin)
        return replace(self, checked=replace(self.checked, product=product))

    def seen_after(self, past: Past) -> ProductVisit:
        """The visit, judged by the state before it."""
        if not self.is_product:
            return self
        seen = offer_of(self.checked.product)
        if self._is_misplaced(seen, past):
            seen = replace(seen, price=None, list_price=None, currency=None)
        said = self.checked.product.evidence.get(FieldName.PRICE)
        ref = self.page.ref
        withheld = frozenset(self.page.withheld)
        offer_check = check_offer(
            seen,
            past,
            page=None if ref is None else str(ref),
            origin=None if said is None else said.origin,
            is_shown=said is not None and bool(said.place),
            domain_currency=self.domain_currency,
            impossible=withheld
            | {
                problem.field
                for problem in self.checked.problems
                if problem.severity is Severity.ERROR
            },
        )
        if "list_price" in withheld:
            kept = replace(offer_check.offer, list_price=past.offer.list_price)
            offer_check = replace(offer_check, offer=kept)
        variants, doubts = check_variants(
            past.variants if "variants" in withheld else variants_of(self.checked.product),
            past,
            page=None if ref is None else str(ref),
        )
        problems = (*offer_check.problems, *doubts)
        return replace(self, offer_check=replace(offer_check, variants=variants, problems=problems))


def is_weak(origin: str | None) -> bool:
    """Whether a price is from any text of the page, or was found by a model."""
    return origin in (None, ANY_TEXT) or str(origin).startswith(MODEL)


def has_ambiguous_currency(product: Product) -> bool:
    """Whether the currency was read from a sign, and not from structured data or by a parser."""
    said = product.evidence.get(FieldName.CURRENCY)
    return said is not None and said.origin != "dom:code" and said.origin.startswith("dom:")


def visit_of(
    page: ParsedPage, domain_currency: str | None, usual_currency: str | None = None
) -> ProductVisit:
    """Check the fields of a page, without regard to the known product.

    `usual_currency`: of other pages of the domain, for a price without a currency, or with a sign
    that several currencies share.
    """
    page = replace(
        page,
        url=line(page.url, _URL_LENGTH) or "",
        final_url=line(page.final_url, _URL_LENGTH),
        parser=line(page.parser, _NAME_LENGTH) or "",
        version=line(page.version, _NAME_LENGTH) or "",
        language=line(page.language, 16),
    )
    if page.product is None:
        return ProductVisit(page, Checked(Product()), domain_currency)
    checked = check(page.product)
    likely = domain_currency or usual_currency
    if checked.product.price is not None and likely is not None:
        seen = checked.product.currency
        if seen is None or (has_ambiguous_currency(checked.product) and share_sign(seen, likely)):
            checked = replace(checked, product=replace(checked.product, currency=likely))
    checked = replace(checked, problems=(*_reported_problems(page), *checked.problems))
    evidence = evidence_json(page.product)
    return ProductVisit(page, checked, domain_currency, evidence).seen_after(Past())


def _reported_problems(page: ParsedPage) -> Iterator[FieldViolation]:
    """Problems that the parser reported; its other fields are valid, so the product is marked."""
    for reported in page.problems[:KEPT_LIST]:
        message = text(reported.message, _PROBLEM_LENGTH) or "its parser broke, and said nothing"
        yield FieldViolation(
            line(reported.field, _NAME_LENGTH) or "", "parser", message, Severity.WARNING
        )
    reported_fields = {reported.field for reported in page.problems}
    for field in page.withheld[:KEPT_LIST]:
        if field not in reported_fields:
            message = "its parser is bypassed; the known value is kept"
            yield FieldViolation(
                line(field, _NAME_LENGTH) or "", "bypassed", message, Severity.WARNING
            )


def _fallback_problems(page: ParsedPage) -> Iterator[FieldViolation]:
    """Problems of the extraction only: the value of the product is valid."""
    for field in page.fallbacks[:KEPT_LIST]:
        message = "the parser found no value; the generic extraction supplied it"
        yield FieldViolation(line(field, _NAME_LENGTH) or "", "fallback", message, Severity.WARNING)


# --- rows ---------------------------------------------------------------------------------------


def row_of(visit: ProductVisit) -> ProductRow:
    """The row of the product, with the decided offer."""
    page, product = visit.page, visit.checked.product
    assert visit.offer_check is not None
    content = content_of(product, visit.offer_check.offer, visit.offer_check.variants)
    config = configuration_of(page.language)
    # the fields of a bypassed parser are still its own
    parser, version = page.bypassed or (page.parser, page.version)
    return ProductRow(
        task_id=page.task_id,
        domain_id=page.domain_id,
        url=page.url,
        url_hash=page.url_hash,
        content=content,
        content_hash=content_hash(content),
        evidence=visit.evidence,
        problems=problems_json(visit.problems),
        metadata=to_json(_metadata(page, product)),
        parser=parser,
        version=version,
        language=page.language,
        config=config,
        marks="\n".join(marks_of(config, content.sku, content.gtin)),
    )


def _metadata(page: ParsedPage, product: Product) -> dict[str, str]:
    final_url = None if page.final_url == page.url else page.final_url
    known = {name: line(getattr(product, name), SKU_LENGTH) for name in _DETAILS}
    return {name: text for name, text in {"final_url": final_url, **known}.items() if text}


def extraction_of(visit: ProductVisit, product_id: int | None) -> NewExtraction:
    page = visit.page
    product = page.product or Product()
    ref = page.ref
    return NewExtraction(
        task_id=page.task_id,
        product_id=product_id,
        domain_id=page.domain_id,
        url=page.url,
        parser=page.parser,
        parser_version=page.version,
        role=page.role,
        outcome=visit.outcome.value,
        confidence=page.product.confidence if page.product is not None else None,
        fields=fields_json(product),
        evidence=visit.evidence,
        problems=problems_json((*visit.problems, *_fallback_problems(page))),
        error_message=visit.reason,
        segment=ref.segment if ref else None,
        segment_offset=ref.offset if ref else None,
        segment_length=ref.length if ref else None,
    )


def past_of(known: KnownProduct) -> Past:
    return Past(
        known.offer,
        unconfirmed_values(known.problems),
        known.variants,
        price_origin=known.price_origin,
        rejected=frozenset(known.rejected or ()),
    )


def has_unconfirmed(problems: Iterable[FieldViolation]) -> bool:
    return any(problem.unconfirmed is not None for problem in problems)
