"""What all tables share: naming of constraints and the column types of the design."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from sqlalchemy import BigInteger, DateTime, Identity, MetaData, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

NOW = text("now()")

# PostgreSQL's own naming, so that a migration and a model that agree have equal names
NAMING = {
    "pk": "%(table_name)s_pkey",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "uq": "%(table_name)s_%(column_0_name)s_key",
    "ck": "%(table_name)s_%(constraint_name)s_check",
}

Json = Annotated[dict[str, Any], mapped_column(JSONB)]
RowNumber = Annotated[int, mapped_column(BigInteger, Identity(always=True), primary_key=True)]


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: DateTime(timezone=True),
        str: Text,
        UUID: Uuid,
    }
