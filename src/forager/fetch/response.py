"""One request with its limits and headers, and the response to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import quote

from ada_url import join_url
from multidict import CIMultiDictProxy

from forager import __version__
from forager.fetch.proxies.proxy import ProxySpec
from forager.settings import Settings
from forager.settings.values import is_header_value

MAX_VALIDATOR = 1_000


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """Limits in seconds and bytes; `total` is that of the whole request."""

    connect: float = 10.0  # name lookup, TCP, proxy and TLS handshakes together
    read: float = 20.0  # silence between two reads
    total: float = 120.0
    body: int = 20 * 1024 * 1024  # on the wire, and again after decompression
    header_bytes: int = 64 * 1024
    header_count: int = 128

    def __post_init__(self) -> None:
        # zero would mean "no limit" to the library
        for name in ("connect", "read", "total", "body", "header_bytes", "header_count"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limit {name} must be above zero")


Headers: TypeAlias = CIMultiDictProxy[str]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# a date may lie thousands of years ahead, beyond the range of timestamps
LONGEST_WAIT = 366 * 86400.0
# printable ASCII is not changed; only raw bytes in a header are percent-encoded
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


class Method(StrEnum):
    """The method of a request."""

    GET = "GET"
    HEAD = "HEAD"
    # only requests of rendered pages
    POST = "POST"
    OPTIONS = "OPTIONS"


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `etag` and `last_modified` make it conditional (304 if nothing changed)."""

    url: str
    method: Method = Method.GET
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    proxy: ProxySpec | None = None
    limits: ResponseLimits | None = None
    # the URL has failed before, so another failure says little about its host
    is_retry: bool = False
    # not a page: it waits while pages of the same host wait
    is_background: bool = False
    # refuse private addresses, even if the client allows them
    is_public: bool = False
    # without headers of the client that may be secrets
    is_anonymous: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; `dns` and `connect` (which includes it) are None on a reused connection."""

    dns: float | None
    connect: float | None
    first_byte: float
    total: float


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response: one that is cut short or too large is a failure instead."""

    url: str
    status: int
    reason: str
    headers: Headers
    body: bytes = field(repr=False)
    wire_size: int
    timing: Timing
    peer: str
    http_version: str

    @property
    def redirect(self) -> str | None:
        """The target of a redirect as an absolute URL; None if it is not usable."""
        if self.status not in REDIRECTS:
            return None
        return join_location(self.url, self.headers.get("Location", ""))

    @property
    def retry_after(self) -> float | None:
        """Seconds from either form of Retry-After."""
        return parse_retry_after(self.headers)

    def validator(self, name: str) -> str | None:
        """An ETag or Last-Modified that can be sent back unchanged; None if it is odd or long."""
        value = self.headers.get(name, "")
        usable = value.isascii() and value.isprintable() and len(value) <= MAX_VALIDATOR
        return value if value and usable else None


def join_location(base: str, location: str) -> str | None:
    """Resolve a Location header by WHATWG rules; None if the result is no http(s) URL."""
    if not location:
        return None
    if not location.isascii():
        location = quote(location.encode("utf-8", "surrogateescape"), safe=_PRINTABLE)
    try:
        target = str(join_url(base, location))
    except ValueError:
        return None
    return target if target.startswith(("http://", "https://")) else None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from a Retry-After header, a number or a date, at most a year; None if unreadable."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return min(float(text), LONGEST_WAIT)
    when = _parse_date(text)
    if when is None:
        return None
    # by the clock of the server if it is sent, because clocks may differ
    now = _parse_date(headers.get("Date", "")) or datetime.now(UTC)
    return min(max(0.0, (when - now).total_seconds()), LONGEST_WAIT)


def _parse_date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


# headers with these names are not secret; any other may be
_PUBLIC = frozenset({"user-agent", "from", "dnt", "cache-control", "pragma"})


def is_public_header(header: str) -> bool:
    """Whether the value of a request header is no secret."""
    name = header.strip().lower()
    return name in _PUBLIC or name.startswith("accept")


# they frame the request or belong to one connection: set by a user, they could smuggle a second
# request, or reach another host than the one that the guard and robots.txt were checked for
_RESERVED = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def header_refusal(name: str, value: str) -> str | None:
    """Why a header that a user has set cannot be sent; None if it can."""
    if not _NAME.fullmatch(name) or not is_header_value(value):
        return f"{name!r} is not a header that can be sent"
    if name.lower() in _RESERVED:
        return f"the header {name} cannot be set: it is decided for each connection"
    return None


def agent_header(settings: Settings, given: str | None = None) -> str:
    """The User-Agent header: `given`, or that of the settings."""
    return (given or settings.user_agent).replace("{version}", __version__)
