"""The JSON columns of products and extractions: fields, evidence and problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson

from forager.extract.product.product import FieldName, Product, to_plain
from forager.products.content import line, text
from forager.products.validation.fields import FieldViolation, UnconfirmedValue

# limits of an extraction; the page itself is in the archive
KEPT_DESCRIPTION = 500
KEPT_LIST = 20
KEPT_JSON = 8_000
_ORIGIN_LENGTH = 200


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
    return to_json(known)


def fields_json(product: Product) -> str:
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
    return _stored_json(plain)


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
        text = to_json(plain)
    except TypeError:  # a lone surrogate, an integer beyond all bounds
        return to_json(_storable(plain))
    clean = len(text) <= KEPT_JSON and "\\u0000" not in text
    return text if clean else to_json(_storable(plain))


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


def problems_json(problems: Iterable[FieldViolation]) -> str:
    """Problems with their unconfirmed values, which `unconfirmed_values` reads back."""
    return to_json([_plain_problem(problem) for problem in problems])


def _plain_problem(problem: FieldViolation) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "field": problem.field,
        "rule": problem.rule,
        "message": problem.message,
        "severity": problem.severity.value,
    }
    if problem.unconfirmed is not None:
        plain["held"] = {"value": problem.unconfirmed.value, "page": problem.unconfirmed.page}
    return plain


_SEPARATE_FIELDS = ("availability", "variants")


def unconfirmed_values(problems: Sequence[Mapping[str, Any]]) -> dict[str, UnconfirmedValue]:
    """Values that wait for confirmation, by field; a doubtful currency is held with its price."""
    unconfirmed: dict[str, UnconfirmedValue] = {}
    for problem in problems:
        if "held" in problem:
            field = problem["field"] if problem["field"] in _SEPARATE_FIELDS else "price"
            unconfirmed[field] = UnconfirmedValue(problem["held"]["value"], problem["held"]["page"])
    return unconfirmed


def to_json(value: object) -> str:
    return orjson.dumps(value).decode()
