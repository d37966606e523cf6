"""Kinds of values that several models share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from forager.settings.values import LARGEST_BIGINT, LARGEST_INT, PlainText

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
