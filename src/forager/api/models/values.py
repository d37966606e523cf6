"""Kinds of values that several models share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from forager.errors import InvalidInput
from forager.products.export import amount_text
from forager.settings.values import LARGEST_BIGINT, LARGEST_INT, PlainText
from forager.tasks.task import parse_every


def _amount(value: Any) -> Any:
    return amount_text(value) if isinstance(value, Decimal) else value


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


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
Amount = Annotated[str, BeforeValidator(_amount), Field(examples=["49.90"])]
Seconds = Annotated[float, BeforeValidator(_seconds)]
# a time that comes in; without a zone it is in UTC
Moment = Annotated[datetime, AfterValidator(_assume_utc)]
Every = Annotated[PlainText, AfterValidator(_interval), Field(max_length=50, examples=["6h"])]


def interval_of(every: str | None) -> timedelta | None:
    """The length of time that a checked `Every` stands for."""
    return None if every is None else parse_every(every)


__all__ = [
    "LARGEST_BIGINT",
    "LARGEST_INT",
    "Order",
    "PlainText",
    "Reason",
    "Time",
    "View",
    "example",
]


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


Reason = Annotated[PlainText, Field(max_length=500)]
Time = Annotated[datetime, AfterValidator(_utc)]


class View(BaseModel):
    """What comes out: made from a value of a service, field by field."""

    model_config = ConfigDict(
        from_attributes=True, json_schema_serialization_defaults_required=True
    )


class Order(BaseModel):
    """What comes in: an unknown field is an error, so that a misspelt one is not lost."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def example(**values: Any) -> ConfigDict:
    """The configuration of an order whose example can be sent as it is."""
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [values]})
