"""What is wrong with an input, in sentences that say what is accepted.

Pydantic writes for programmers ("Input should be a valid tuple"); people read "must be a list".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from forager.hints import unknown_name

# what the value of a field must be; the first part of the error's type that is here counts
_ACCEPTED = {
    "missing": "is required",
    "json": "is not valid JSON",
    "string": "must be text",
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "decimal": "must be a number such as 49.90",
    "bool": "must be true or false",
    "list": "must be a list",
    "tuple": "must be a list",
    "set": "must be a list",
    "dict": "must be a table of names and values",
    "model": "must be a table of names and values",
    "datetime": "must be a time such as 2026-01-31T12:00:00Z",
    "date": "must be a date such as 2026-01-31",
    "timezone": "must be a time with its zone, such as 2026-01-31T12:00:00Z",
    "uuid": "must be an ID such as 0199a5c2-8a00-7000-8000-000000000000",
    "url": "must be a URL",
    "path": "must be the path of a file",
}
# limits, with the values that the error names
_LIMITS = {
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_unicode": "contains a lone surrogate",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
}
_OWN_TEXT = ("value_error", "assertion_error")
# beginnings of a message that continues the name of the field
_PREDICATES = ("must ", "is ", "contains ")

_patterns: dict[str, str] = {}


def matches(pattern: str, accepted: str) -> str:
    """The pattern of a field, and what it accepts in words: "three letters"."""
    _patterns[pattern] = accepted
    return pattern


def message_of(problem: Any, known: Iterable[str] = ()) -> str:
    """What is wrong with the field of a Pydantic error, without the value: it may be secret.

    `known` are the names that an unknown one may be a misspelling of.
    """
    kind, context = str(problem["type"]), problem.get("ctx", {})
    if kind in _OWN_TEXT:
        return str(problem["msg"]).partition(", ")[2]
    if kind == "extra_forbidden":
        return unknown_name(str(problem["loc"][-1]), known) if known else "unknown field"
    if kind == "string_pattern_mismatch":
        return f"must be {_patterns.get(context['pattern'], 'written differently')}"
    if kind in ("string_too_short", "too_short") and context["min_length"] == 1:
        return "must not be empty"
    if kind in _LIMITS:
        return _LIMITS[kind].format_map(_whole(context)).replace("'", "")
    return _ACCEPTED.get(kind.partition("_")[0], "is not valid")


def _whole(context: dict[str, Any]) -> dict[str, Any]:
    """1 instead of 1.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }


def name_of(place: Sequence[Any]) -> str:
    """The name of a field, without the types of a union that Pydantic tried."""
    return ".".join(str(part) for part in place if "[" not in str(part))


def sentence(name: str, message: str) -> str:
    """The message with the name of its field."""
    if not name:
        return message
    return f"{name} {message}" if message.startswith(_PREDICATES) else f"{name}: {message}"


def sentences(problems: Iterable[Any], known: Iterable[str] = ()) -> list[str]:
    """One sentence for each error of Pydantic."""
    return [sentence(name_of(each["loc"]), message_of(each, known)) for each in problems]
