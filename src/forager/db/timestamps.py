"""Timestamps beyond the years of Python: PostgreSQL has infinity, and years after 9999."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

# with room for any time zone
EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
LATEST = datetime(9999, 12, 29, tzinfo=UTC)


def bound_timestamps(connection: psycopg.AsyncConnection[Any]) -> None:
    """Read timestamps beyond Python's as the earliest or latest one.

    The driver raises an error, so that one such row would make a whole list unreadable.
    """
    for loader in (_Bounded, _BoundedBinary):
        connection.adapters.register_loader("timestamptz", loader)


class _Bounded(Loader):
    """The loader of the driver, which has no bounds to set."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        driver = psycopg.adapters.get_loader(oid, self.format)
        assert driver is not None
        self._driver = driver(oid, context)

    def load(self, data: Buffer) -> datetime:
        try:
            value: datetime = self._driver.load(data)
        except psycopg.DataError:
            return EARLIEST if _is_negative(bytes(data), self.format) else LATEST
        return value


class _BoundedBinary(_Bounded):
    format = Format.BINARY


def _is_negative(data: bytes, format_: Format) -> bool:
    if format_ is Format.BINARY:
        return data[0] >= 0x80
    return data.startswith(b"-") or data.endswith(b"BC")
