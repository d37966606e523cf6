"""One exception family: the class determines the handling, the message describes the problem."""

from __future__ import annotations

import math
from enum import StrEnum

from forager.hints import Hint


class ErrorKind(StrEnum):
    """What went wrong, in one word; the same list for jobs, pages and tasks."""

    NETWORK = "network"
    TIMEOUT = "timeout"
    TLS = "tls"
    HTTP_CLIENT = "http_client"
    HTTP_SERVER = "http_server"
    # a captcha or another challenge in place of the page
    BLOCKED = "blocked"
    TOO_LARGE = "too_large"
    NOT_ALLOWED = "not_allowed"
    ROBOTS = "robots"
    RENDER = "render"
    PARSE = "parse"
    VALIDATION = "validation"
    INTERNAL = "internal"


class ForagerError(Exception):
    """Something went wrong in Forager."""

    exit_code = 1

    def __init__(self, message: str | None = None, *, hint: str | Hint | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = hint
        super().__init__(f"{self.message}\n{hint}" if hint else self.message)


# --- what a person or program asked for cannot be done --------------------------------------


class InvalidInput(ForagerError):
    """The request is not valid."""

    exit_code = 2


class NotFound(InvalidInput):
    """Not found."""


class NotAllowed(ForagerError):
    """This is not allowed now: what it is asked of is in another state."""

    exit_code = 4


class AlreadyThere(NotAllowed):
    """There is one already."""


class NotPermitted(NotAllowed):
    """This is not permitted to who asks, or not in the way it is asked for."""


class NotYet(NotAllowed):
    """There is no room for it now; after `retry_after` seconds there may be."""

    def __init__(self, message: str, *, retry_after: float, hint: str | Hint | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = max(1, math.ceil(retry_after))


# --- the ground is missing ---------------------------------------------------------------------


class DatabaseUnavailable(ForagerError):
    """The database cannot be reached."""


class StatementTimedOut(DatabaseUnavailable):
    """PostgreSQL canceled a statement that took too long."""


class EmbeddedServerError(DatabaseUnavailable):
    """The embedded PostgreSQL cannot be used."""


class SchemaMismatch(ForagerError):
    """The database has another schema version than this Forager."""


class DiskFull(ForagerError):
    """There is no space left; work waits until there is."""


class ReaderLeft(BrokenPipeError):
    """The reader of a pipe that is written to has closed it."""


class LeaseLost(ForagerError):
    """The job's lease now belongs to someone else; nothing more may be written."""


# --- what to do about a failed piece of work ------------------------------------------------


class WorkFailed(ForagerError):
    """A piece of work failed. Subclasses say what to do about it."""

    def __init__(
        self,
        message: str | None = None,
        *,
        kind: ErrorKind = ErrorKind.INTERNAL,
        hint: str | Hint | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class Retry(WorkFailed):
    """It may work later: try again after a while."""


class SlowDown(Retry):
    """The other side asks for fewer requests."""

    def __init__(
        self,
        message: str | None = None,
        *,
        kind: ErrorKind = ErrorKind.HTTP_SERVER,
        retry_after: float | None = None,
        hint: str | Hint | None = None,
    ) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.retry_after = retry_after


class RotateProxy(Retry):
    """The proxy is at fault: try again through another one."""


class PerhapsProxy(RotateProxy):
    """The proxy or the server is at fault: the success of another proxy shows which."""


class GiveUp(WorkFailed):
    """It will not work however often it is tried."""
