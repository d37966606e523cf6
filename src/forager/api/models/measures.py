"""Amounts, lengths of time and moments, as they come in and go out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from forager.api.models.values import PlainText
from forager.errors import InvalidInput
from forager.products.export import amount_text
from forager.tasks.task import parse_every


def _amount(value: Any) -> Any:
    return amount_text(value) if isinstance(value, Decimal) else value


def _seconds(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value


def _utc(at: datetime) -> datetime:
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
Moment = Annotated[datetime, AfterValidator(_utc)]
Every = Annotated[PlainText, AfterValidator(_interval), Field(max_length=50, examples=["6h"])]


def interval_of(every: str | None) -> timedelta | None:
    """The length of time that a checked `Every` stands for."""
    return None if every is None else parse_every(every)
