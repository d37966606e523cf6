"""What is refused to a caller."""

from __future__ import annotations

from forager.errors import ForagerError, NotAllowed, NotPermitted, NotYet
from forager.hints import Hint


class Unauthorised(ForagerError):
    """A key is needed, and none that is valid was given."""

    exit_code = 4


class Forbidden(NotPermitted):
    """This key may not be used for that."""


class QuotaExceeded(NotYet):
    """The owner has used up what was granted."""

    def __init__(
        self,
        message: str,
        *,
        what: str,
        used: int,
        limit: int,
        retry_after: float,
        hint: str | Hint | None = None,
    ) -> None:
        super().__init__(message, retry_after=retry_after, hint=hint)
        self.what = what
        self.used = used
        self.limit = limit


class StillAnswering(NotAllowed):
    """The first request with this Idempotency-Key is still being answered."""


class OtherRequest(NotAllowed):
    """This Idempotency-Key was used for another request."""
