"""The result of one visit to a product's page: its outcome, its row, and its extraction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

import orjson

from forager.archive.segment import ArchiveRef
from forager.db.text_search import configuration_of
from forager.extract.product.record import FieldName, Product, to_plain
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
from forager.products.plausibility import Judged, Past, judge, judge_variants
from forager.products.store.records import NewExtraction
from forager.products.store.writes import KnownProduct, ProductRow
from forager.products.validation import Checked, Held, Problem, Severity, check

# stored as metadata
_IDENTIFIERS = ("mpn", "product_id", "variant_id")
# limits of an extraction; the page itself is in the archive
KEPT_DESCRIPTION = 500
KEPT_LIST = 20
KEPT_JSON = 8_000
_ORIGIN_LENGTH = 200
_ERROR_LENGTH = 2_000
_URL_LENGTH = 20_000
_NAME_LENGTH = 100
_PROBLEM_LENGTH = 500


class Outcome(StrEnum):
    OK = "ok"
    # stored, but marked
    SUSPECT = "suspect"
    # no product: only the extraction is stored
    INCOMPLETE = "incomplete"
    # the parser broke
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage(Parsed):
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
    def of(cls, parsed: Parsed, **values: Any) -> ReadPage:
        return cls(**{name: getattr(parsed, name) for name in Parsed.__slots__}, **values)


@dataclass(frozen=True, slots=True)
class Visit:
    """A checked page. Whether its price is accepted depends on the known product."""

    page: ReadPage
    checked: Checked
    domain_currency: str | None
    # as JSON, for the product and the extraction
    evidence: str = "{}"
    judged: Judged | None = None

    @property
    def is_product(self) -> bool:
        return self.page.product is not None and self.checked.incomplete is None

    @property
    def problems(self) -> tuple[Problem, ...]:
        return (*self.checked.problems, *(self.judged.problems if self.judged else ()))

    @property
    def outcome(self) -> Outcome:
        if self.page.product is None:
            return Outcome.FAILED
        if self.checked.incomplete is not None:
            return Outcome.INCOMPLETE
        bad = any(problem.severity is not Severity.WARNING for problem in self.problems)
        bad = bad or bool(self.page.problems or self.page.fallbacks)
        return Outcome.SUSPECT if bad else Outcome.OK

    @property
    def reason(self) -> str | None:
        if self.page.product is None:
            return text(self.page.error, _ERROR_LENGTH) or "the parser broke, and said nothing"
        return self.checked.incomplete

    def seen_after(self, past: Past) -> Visit:
        """The visit, judged by the state before it."""
        if not self.is_product:
            return self
        ref = self.page.ref
        judged = judge(
            offer_of(self.checked.product),
            past,
            page=None if ref is None else str(ref),
            domain_currency=self.domain_currency,
            impossible={
                problem.field
                for problem in self.checked.problems
                if problem.severity is Severity.ERROR
            },
        )
        variants, doubts = judge_variants(
            variants_of(self.checked.product), past, page=None if ref is None else str(ref)
        )
        problems = (*judged.problems, *doubts)
        return replace(self, judged=replace(judged, variants=variants, problems=problems))


def visit_of(page: ReadPage, domain_currency: str | None) -> Visit:
    """Check the fields of a page, without regard to the known product."""
    page = replace(
        page,
        url=line(page.url, _URL_LENGTH) or "",
        final_url=line(page.final_url, _URL_LENGTH),
        parser=line(page.parser, _NAME_LENGTH) or "",
        version=line(page.version, _NAME_LENGTH) or "",
        language=line(page.language, 16),
    )
    if page.product is None:
        return Visit(page, Checked(Product()), domain_currency)
    checked = check(page.product)
    checked = replace(checked, problems=(*_reported_problems(page), *checked.problems))
    evidence = evidence_json(page.product)
    return Visit(page, checked, domain_currency, evidence).seen_after(Past())


def _reported_problems(page: ReadPage) -> Iterator[Problem]:
    """Problems that the parser reported; its other fields are valid, so the product is marked."""
    for reported in page.problems[:KEPT_LIST]:
        words = text(reported.message, _PROBLEM_LENGTH) or "its parser broke, and said nothing"
        yield Problem(line(reported.field, _NAME_LENGTH) or "", "parser", words, Severity.WARNING)


def _fallback_problems(page: ReadPage) -> Iterator[Problem]:
    """Problems of the extraction only: the value of the product is valid."""
    for field in page.fallbacks[:KEPT_LIST]:
        words = "the parser found no value; the generic extraction supplied it"
        yield Problem(line(field, _NAME_LENGTH) or "", "fallback", words, Severity.WARNING)


# --- rows ---------------------------------------------------------------------------------------


def row_of(visit: Visit) -> ProductRow:
    """The row of the product, with the decided offer."""
    page, product = visit.page, visit.checked.product
    assert visit.judged is not None
    content = content_of(product, visit.judged.offer, visit.judged.variants)
    config = configuration_of(page.language)
    return ProductRow(
        task_id=page.task_id,
        domain_id=page.domain_id,
        url=page.url,
        url_hash=page.url_hash,
        content=content,
        content_hash=content_hash(content),
        evidence=visit.evidence,
        problems=problems_json(visit.problems),
        metadata=_json(_metadata(page, product)),
        parser=page.parser,
        version=page.version,
        language=page.language,
        config=config,
        marks="\n".join(marks_of(config, content.sku, content.gtin)),
    )


def _metadata(page: ReadPage, product: Product) -> dict[str, str]:
    final_url = None if page.final_url == page.url else page.final_url
    known = {name: line(getattr(product, name), SKU_LENGTH) for name in _IDENTIFIERS}
    return {name: text for name, text in {"final_url": final_url, **known}.items() if text}


def extraction_of(visit: Visit, product_id: int | None) -> NewExtraction:
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
        fields=_stored_json(_read_fields(product)),
        evidence=visit.evidence,
        problems=problems_json((*visit.problems, *_fallback_problems(page))),
        error_message=visit.reason,
        segment=ref.segment if ref else None,
        segment_offset=ref.offset if ref else None,
        segment_length=ref.length if ref else None,
    )


def evidence_json(product: Product) -> str:
    """Confidence and origin by field."""
    known = {
        name.value: {
            "confidence": round(float(said.confidence), 3),
            "origin": line(said.origin, _ORIGIN_LENGTH),
            **({} if said.place is None else {"place": line(said.place, _ORIGIN_LENGTH) or ""}),
        }
        for name in FieldName
        if (said := product.evidence.get(name)) is not None
    }
    return _json(known)


def _read_fields(product: Product) -> dict[str, Any]:
    """The fields as they were read, shortened."""
    shown = replace(
        product,
        description=text(product.description, KEPT_DESCRIPTION),
        price=_printable(product.price),
        list_price=_printable(product.list_price),
        rating=_printable(product.rating),
        images=product.images[:KEPT_LIST],
        variants=tuple(
            replace(variant, price=_printable(variant.price))
            for variant in product.variants[:KEPT_LIST]
        ),
        category=product.category[:KEPT_LIST],
        evidence={},
    )
    plain = to_plain(shown)
    del plain["confidence"]
    return plain


def _printable(value: Decimal | None) -> Decimal | None:
    """An amount that can be written out; 1E+1000000 cannot."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return value if len(digits) <= 40 and -20 <= exponent <= 40 else None


def _stored_json(plain: dict[str, Any]) -> str:
    """JSON of the fields; what PostgreSQL rejects is cleaned."""
    try:
        text = _json(plain)
    except TypeError:  # a lone surrogate, an integer beyond all bounds
        return _json(_storable(plain))
    clean = len(text) <= KEPT_JSON and "\\u0000" not in text
    return text if clean else _json(_storable(plain))


def _storable(value: Any) -> Any:
    """Plain data that PostgreSQL accepts, with shortened texts."""
    if isinstance(value, str):
        return text(value, KEPT_DESCRIPTION * 4) or ""
    if isinstance(value, Mapping):
        return {name: _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)[:100] if abs(value) < 10**100 else None
    return value


# --- problems, as products keep them --------------------------------------------------------------


def problems_json(problems: Iterable[Problem]) -> str:
    return _json([_plain_problem(problem) for problem in problems])


def _plain_problem(problem: Problem) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "field": problem.field,
        "rule": problem.rule,
        "message": problem.message,
        "severity": problem.severity.value,
    }
    if problem.held is not None:
        plain["held"] = {"value": problem.held.value, "page": problem.held.page}
    return plain


def past_of(known: KnownProduct) -> Past:
    return Past(known.offer, held_values(known.problems), known.variants)


_HELD_APART = ("availability", "variants")


def held_values(problems: Sequence[Mapping[str, Any]]) -> dict[str, Held]:
    """Values that wait for confirmation, by field; a doubtful currency is held with its price."""
    held: dict[str, Held] = {}
    for problem in problems:
        if "held" in problem:
            field = problem["field"] if problem["field"] in _HELD_APART else "price"
            held[field] = Held(problem["held"]["value"], problem["held"]["page"])
    return held


def is_holding(problems: Iterable[Problem]) -> bool:
    return any(problem.held is not None for problem in problems)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
