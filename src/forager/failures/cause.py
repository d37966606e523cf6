"""Causes of failed attempts: kind, group, and whether a retry may help."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from enum import StrEnum

from forager.errors import ErrorKind, GiveUp, SlowDown, WorkFailed, error_with_type
from forager.extract.text import storable

MAX_MESSAGE = 2_000
MAX_KEY = 300
MAX_TRACE = 20_000


class ErrorType(StrEnum):
    """The groups in which errors are counted and listed."""

    NETWORK = "network"
    HTTP = "http"
    PARSE = "parse"
    VALIDATION = "validation"
    OTHER = "other"


ERROR_TYPES: dict[ErrorKind, ErrorType] = {
    ErrorKind.NETWORK: ErrorType.NETWORK,
    ErrorKind.TIMEOUT: ErrorType.NETWORK,
    ErrorKind.TLS: ErrorType.NETWORK,
    ErrorKind.HTTP_CLIENT: ErrorType.HTTP,
    ErrorKind.HTTP_SERVER: ErrorType.HTTP,
    ErrorKind.BLOCKED: ErrorType.HTTP,
    ErrorKind.TOO_LARGE: ErrorType.HTTP,
    ErrorKind.NOT_ALLOWED: ErrorType.OTHER,
    ErrorKind.ROBOTS: ErrorType.OTHER,
    ErrorKind.PARSE: ErrorType.PARSE,
    ErrorKind.RENDER: ErrorType.PARSE,
    ErrorKind.VALIDATION: ErrorType.VALIDATION,
    ErrorKind.INTERNAL: ErrorType.OTHER,
}

_URL = re.compile(r"\b(?:https?|socks5)://[^\s'\",;]+")
_ADDRESS = re.compile(r"\[[0-9a-f:.]{2,}\]|\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?", re.IGNORECASE)
_HEX = re.compile(r"\b(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f][0-9a-f-]{7,}\b", re.IGNORECASE)
# a status identifies the cause; other numbers identify the object
_NUMBER = re.compile(r"(?<!answered )(?<![\w.])\d[\d.,]*(?![\w])")


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an attempt failed."""

    kind: ErrorKind
    message: str
    permanent: bool = False
    # of a Retry-After
    retry_after: float | None = None
    # of a bug in Forager
    stack_trace: str | None = None

    @property
    def type(self) -> ErrorType:
        """The type of the error, for statistics."""
        return ERROR_TYPES[self.kind]

    @property
    def key(self) -> str:
        """The message without what differs between errors of the same cause."""
        return message_key(self.message)


def cause_of(error: Exception) -> Cause:
    """The cause for an exception; an exception other than WorkFailed is a bug of Forager."""
    if isinstance(error, WorkFailed):
        return Cause(
            error.kind,
            one_line(error.message),
            # a 404 or 403 of a shop may be permanent or temporary
            permanent=isinstance(error, GiveUp) and error.kind is not ErrorKind.HTTP_CLIENT,
            retry_after=error.retry_after if isinstance(error, SlowDown) else None,
        )
    trace = "".join(traceback.format_exception(error))
    return Cause(
        ErrorKind.INTERNAL,
        one_line(error_with_type(error)),
        stack_trace=storable(trace)[-MAX_TRACE:],
    )


def message_key(message: str) -> str:
    """The message without numbers, URLs and addresses, by which errors are grouped."""
    key = _URL.sub("<url>", message)
    key = _ADDRESS.sub("<address>", key)
    key = _HEX.sub("<id>", key)
    return _NUMBER.sub("<n>", key)[:MAX_KEY]


def one_line(text: str) -> str:
    """A message as a table can store it: servers and pages may have written anything."""
    return " ".join(storable(text).split())[:MAX_MESSAGE] or "no reason was given"
