"""Bodies of the API: refused with words, or an order whose meaning can be had without a fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from forager.api.app import ROUTERS
from forager.api.problems import problem_response
from forager.errors import ForagerError
from forager.operations.models import RequestModel
from fuzz.target import Target

assert ROUTERS, "importing them makes every order known"
# what endpoints ask an order for; each may refuse it, with an error of the family
_MEANINGS = (
    "options", "filter", "value", "changes", "schedule", "terms", "requests", "selection", "new",
    "default_every",
)  # fmt: skip


def _orders(base: type[RequestModel]) -> Iterator[type[RequestModel]]:
    for order in base.__subclasses__():
        yield order
        yield from _orders(order)


ORDERS = sorted(set(_orders(RequestModel)), key=lambda order: order.__qualname__)


def check(data: bytes) -> None:
    """The number of an order in the first byte, the JSON after it."""
    chosen = ORDERS[data[0] % len(ORDERS)] if data else ORDERS[0]
    try:
        # as the server does it: the library of the language first, then the model
        body = json.loads(data[1:])
    except (ValueError, RecursionError):
        return
    try:
        order = chosen.model_validate(body)
    except ValidationError as error:
        refused = problem_response(RequestValidationError(error.errors()))
        assert refused.status_code == 422
        return
    _check_order(order)


def _check_order(order: RequestModel) -> None:
    # half a surrogate pair can be sent, but not stored: the response is 422
    with suppress(PydanticSerializationError):
        again = type(order).model_validate_json(_json(order))
        assert _json(again) == _json(order), "an order must survive being written down"
    for name in _MEANINGS:
        if hasattr(type(order), name):
            # a method, or the value of a property
            with suppress(ForagerError, ValidationError):
                meaning = getattr(order, name)
                if callable(meaning):
                    meaning()


def _json(order: BaseModel) -> str:
    return order.model_dump_json(exclude_unset=True)


def _examples() -> Iterator[bytes]:
    for number, order in enumerate(ORDERS):
        schema = order.model_config.get("json_schema_extra")
        given = schema.get("examples", [{}]) if isinstance(schema, dict) else [{}]
        for example in given if isinstance(given, list) else []:
            yield bytes([number]) + orjson.dumps(example)


def _names() -> Iterator[bytes]:
    for order in ORDERS:
        for name in order.model_fields:
            yield f'"{name}":'.encode()


TARGET = Target(
    check,
    list(_examples()),
    [*dict.fromkeys(_names()), b"null", b"true", b"1e400", b"-1", b"9223372036854775808",
     b'"\\u0000"', b'"\\ud800"', b"[]", b"{}", b'"P1Y"', b'"* * * * *"', b'"1d"', b'"http://h/"',
     b'"re:("', b"NaN"],
)  # fmt: skip
