"""What is refused to a caller."""

from __future__ import annotations

import math

from forager.errors import ForagerError, NotAllowed


class Unauthorised(ForagerError):
    """A key is needed, and none that is valid was given."""

    exit_code = 4


class Forbidden(NotAllowed):
    """This key may not be used for that."""


class QuotaExceeded(NotAllowed):
    """The owner has used up what was granted."""

    def __init__(self, message: str, *, retry_after: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = max(1, math.ceil(retry_after))


class StillAnswering(NotAllowed):
    """The first request with this Idempotency-Key is still being answered."""


class OtherRequest(NotAllowed):
    """This Idempotency-Key was used for another request."""
