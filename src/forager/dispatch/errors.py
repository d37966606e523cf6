"""What can be wrong with a broker."""

from __future__ import annotations

from forager.errors import ForagerError, InvalidInput


class BrokerUnavailable(ForagerError):
    """The broker cannot be reached, or does not answer."""


class CeleryMissing(InvalidInput):
    """Celery is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "FORAGER_DISPATCH=celery needs Celery, which is not installed",
            hint="Install it with: pip install 'forager-crawler[celery]'",
        )
