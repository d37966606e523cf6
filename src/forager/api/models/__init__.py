"""Types that several models share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from forager.amounts import amount_text
from forager.errors import InvalidInput
from forager.settings.values import LARGEST_BIGINT, LARGEST_INT, PlainText
from forager.tasks.task import parse_every


def interval_text(seconds: float | None) -> str:
    """An interval as it can be given: 21600 as 6h."""
    if seconds is None:
        return ""
    for length, unit in ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _interval_out(value: Any) -> Any:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return interval_text(seconds) if isinstance(seconds, int | float) else seconds


def _without_secrets(payload: dict[str, Any]) -> dict[str, Any]:
    """The options of a crawl; its sealed secrets are of use only to its runner."""
    return {name: value for name, value in payload.items() if name != "sealed"}


def _assume_utc(at: datetime) -> datetime:
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is out of range") from None


def _interval(text: str) -> str:
    try:
        parse_every(text)
    except InvalidInput as error:
        raise ValueError(f"{error.message}. {error.hint or ''}".strip()) from None
    return text


# money and ratings are text, so that no digit is lost
Amount = Annotated[
    str,
    BeforeValidator(lambda value: amount_text(value) if isinstance(value, Decimal) else value),
    Field(examples=["49.90"]),
]
Hexadecimal = Annotated[str, BeforeValidator(bytes.hex)]
CrawlPayload = Annotated[dict[str, Any], BeforeValidator(_without_secrets)]
Interval = Annotated[str, BeforeValidator(_interval_out), Field(examples=["6h"])]
# a time in a request; without a zone it is in UTC
Moment = Annotated[datetime, AfterValidator(_assume_utc)]
Every = Annotated[PlainText, AfterValidator(_interval), Field(max_length=50, examples=["6h"])]


def interval_of(every: str | None) -> timedelta | None:
    """The interval of a validated `Every`."""
    return None if every is None else parse_every(every)


__all__ = ["LARGEST_BIGINT", "LARGEST_INT", "PlainText"]

# IDs in one request
MAX_BULK = 1000
Reason = Annotated[PlainText, Field(max_length=500)]
Time = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]


# types of rows, and their types in responses
_ANSWERED: dict[Any, Any] = {datetime: Time, Decimal: Amount, timedelta: Interval}
_CONTAINERS: dict[Any, Any] = {tuple: list, Sequence: list, Mapping: dict, frozenset: list}


def _answered(hint: Any) -> Any:
    kind, parts = get_origin(hint), tuple(map(_answered, get_args(hint)))
    if kind in (Union, UnionType):
        return reduce(or_, parts)
    if kind is None or kind is Literal:
        return _ANSWERED.get(hint, hint)
    return _CONTAINERS.get(kind, kind)[parts[0] if parts[1:] == (...,) else parts]


class _Joined:
    """The attributes of several values; the first value that has one counts."""

    def __init__(self, values: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        self.__dict__ |= {"_values": values, **attributes}

    def __getattr__(self, name: str) -> Any:
        owner = next((each for each in self._values if hasattr(each, name)), None)
        return getattr(owner, name)


class View(BaseModel):
    """A response, made field by field from the attributes of a value of a service.

    A view of a `row`, which is a dataclass, has the fields of the row except the `hidden` ones. It
    declares only those that differ.
    """

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_serialization_defaults_required=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def __init_subclass__(
        cls, row: type | None = None, hidden: Collection[str] = (), **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if row is not None:
            declared = vars(cls).get("__annotations__", {})
            aliases = {getattr(vars(cls).get(name), "validation_alias", None) for name in declared}
            shown = {field.name for field in fields(row)} - aliases - set(hidden)
            hints = get_type_hints(row, include_extras=True).items()
            cls.__annotations__ = {
                name: _answered(hint) for name, hint in hints if name in shown
            } | declared

    @classmethod
    def of(cls, value: Any, *others: Any, **more: Any) -> Self:
        """The view of a value; other values and `more` have fields that it lacks."""
        is_whole = not (others or more)
        return cls.model_validate(value if is_whole else _Joined((value, *others), more))


class Order(BaseModel):
    """The body of a request; an unknown field is an error, so that a typo is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def given(self) -> dict[str, Any]:
        """The values in the request; null is a value too."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def example(**values: Any) -> ConfigDict:
    """The configuration of an order whose example can be sent as it is."""
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [values]})
