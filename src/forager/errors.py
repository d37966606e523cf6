"""One exception family: the class determines the handling, the message describes the problem."""

from __future__ import annotations

import math
import os
import re
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


class TooManyRequests(NotAllowed):
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


class ProxySuspected(RotateProxy):
    """The proxy or the server is at fault: the success of another proxy shows which."""


class StaleConnection(Retry):
    """The server closed a kept connection while it was used again: try again with another one."""


class GiveUp(WorkFailed):
    """It will not work however often it is tried."""


# --- exceptions of libraries as text for people ---------------------------------------------

_OBJECT = re.compile(r"<?[\w.]+(?:\([^()]*\))? object at 0x[0-9a-f]+>?(?:: )?")
_CONNECT = re.compile(r"(?:\[Errno (\d+)\] )?Connect call failed \([^)]*\)")
_PREFIX = re.compile(r"^\[(?:Errno -?\d+|[A-Z]+: \w+)\] | \(_ssl\.c:\d+\)")


def without_object_addresses(text: str) -> str:
    return _OBJECT.sub("", text)


def error_text(error: BaseException) -> str:
    """The message of an exception for people, without the notation of Python.

    asyncio writes the address of a refused connection as a tuple; the text of the error number
    says what happened. The type stands in for an empty message.

    >>> error_text(FileNotFoundError(2, "No such file or directory", "a.toml"))
    'No such file or directory: a.toml'
    """
    text = without_object_addresses(_PREFIX.sub("", _own_text(error)))
    return text.strip() or type(error).__name__


def error_with_type(error: BaseException) -> str:
    """The type and message of an exception that a developer has to fix, such as one of a parser."""
    name = type(error).__name__
    text = str(error) if isinstance(error, KeyError) else error_text(error)
    return name if text == name else f"{name}: {text}"


def _own_text(error: BaseException) -> str:
    if isinstance(error, ForagerError):
        return error.message
    if isinstance(error, BaseExceptionGroup):  # whose message only counts them
        return "; ".join(error_text(each) for each in error.exceptions)
    if isinstance(error, KeyError) and len(error.args) == 1:
        return f"{error.args[0]} is missing"
    if isinstance(error, UnicodeDecodeError):
        return f"the text is not valid {error.encoding} at byte {error.start}"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {os.fsdecode(error.filename)}"
    number = getattr(error, "errno", None)
    return _CONNECT.sub(lambda found: _system_text(found[1] or number), str(error))


def _system_text(number: object) -> str:
    return os.strerror(int(str(number))) if number else "the connection failed"
