"""Isolation: one bad row must not stop a service for all others.

An item that fails is skipped and reported with its service; the step continues with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import psycopg

from forager.errors import DatabaseUnavailable, DiskFull, ForagerError
from forager.logs import get_logger

log = get_logger("services")

# the database can do this to every service, and it passes without a restart
UNAVAILABLE = (DatabaseUnavailable, DiskFull, psycopg.OperationalError, psycopg.InterfaceError)
REASON_LENGTH = 500

# items skipped by the current step of a service; outside of a service they are only logged
SKIPPED: ContextVar[list[str] | None] = ContextVar("skipped", default=None)


@contextmanager
def isolated(item: str) -> Iterator[None]:
    """Skip and report `item` if the block fails, unless the database is unavailable."""
    try:
        yield
    except UNAVAILABLE:
        raise
    except Exception as error:
        skipped = SKIPPED.get()
        if skipped is None:
            log.error("item skipped", item=item, reason=reason_of(error), exc_info=error)
        else:
            skipped.append(f"{item}: {reason_of(error)}")


def reason_of(error: BaseException) -> str:
    text = error.message if isinstance(error, ForagerError) else str(error)
    if not isinstance(error, (ForagerError, psycopg.Error)):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text.strip()[:REASON_LENGTH]
