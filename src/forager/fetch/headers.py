"""Which request headers users may set, and which may be shown and sent to anybody."""

from __future__ import annotations

import re

from forager import __version__
from forager.settings import Settings

# what a header with one of these names says is no secret; any other may be one
_PUBLIC = frozenset({"user-agent", "from", "dnt", "cache-control", "pragma"})


def is_public_header(header: str) -> bool:
    name = header.strip().lower()
    return name in _PUBLIC or name.startswith("accept")


# they frame the request or belong to one connection: set by a user, they would let a request carry
# a second one, or reach another host than the guard and robots.txt were asked about
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
_NOT_IN_A_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def header_refusal(name: str, value: str) -> str | None:
    """Why a header that a user has set cannot be sent; None if it can."""
    if not _NAME.fullmatch(name) or _NOT_IN_A_VALUE.search(value):
        return f"{name!r} is not a header that can be sent"
    if name.lower() in _RESERVED:
        return f"the header {name} cannot be set: it is decided for each connection"
    return None


def agent_header(settings: Settings, given: str | None = None) -> str:
    """The User-Agent header: what was given for this once, or what is set."""
    return (given or settings.user_agent).replace("{version}", __version__)
