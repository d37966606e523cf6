"""Metrics: counters and histograms of all processes together, and who has added to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Double, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from forager.db.tables.base import NOW, Base


class MetricValue(Base):
    """One number that only grows. `part` is empty for a counter; else a bucket, or the sum."""

    __tablename__ = "metric_values"
    # few rows, written again and again: every update finds room on its own page
    __table_args__ = ({"postgresql_with": {"fillfactor": "50"}},)

    name: Mapped[str] = mapped_column(primary_key=True)
    labels: Mapped[list[str]] = mapped_column(ARRAY(Text), primary_key=True)
    part: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float] = mapped_column(Double)


class MetricWriter(Base):
    """A process that adds to the values, and the number of its last addition."""

    __tablename__ = "metric_writers"
    __table_args__ = ({"postgresql_with": {"fillfactor": "50"}},)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    addition: Mapped[int] = mapped_column(BigInteger)
    written_at: Mapped[datetime] = mapped_column(server_default=NOW)


class ServiceProcessRow(Base):
    """A process that runs background services, and the status of each."""

    __tablename__ = "service_processes"
    __table_args__ = ({"postgresql_with": {"fillfactor": "50"}},)

    id: Mapped[UUID] = mapped_column(primary_key=True)
    command: Mapped[str]
    host: Mapped[str]
    pid: Mapped[int]
    # its name on its machine, by which others there see whether it still runs
    process: Mapped[str | None]
    started_at: Mapped[datetime] = mapped_column(server_default=NOW)
    last_seen: Mapped[datetime] = mapped_column(server_default=NOW)
    services: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
