"""Kinds of values that several models share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LARGEST_INT = 2**31 - 1
LARGEST_BIGINT = 2**63 - 1


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character, which cannot be stored")
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise ValueError("it holds half of a character (a lone surrogate), which cannot be stored")
    return text


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)


# text that PostgreSQL can hold; use it for every text that comes in
PlainText = Annotated[str, AfterValidator(_plain)]
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
