"""Which names the server answers to, and which web pages may make a browser change something.

A page somewhere can make a browser send requests here, and DNS can make a name of its own point to
this machine. The first is told by the header Origin, the second by the header Host.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from forager.access.errors import Forbidden
from forager.api.problems import Misdirected
from forager.settings import Settings

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# asked by machines that know an address and no name, and tell nothing
UNNAMED = frozenset({"/healthz", "/readyz"})
ANY = "*"


class Origins:
    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in UNNAMED:
            headers = Headers(scope=scope)
            self._check_name(headers)
            if scope["method"] not in SAFE_METHODS:
                _check_origin(headers)
        await self._app(scope, receive, send)

    def _check_name(self, headers: Headers) -> None:
        name = name_of(headers.get("host", ""))
        if ANY not in self._names and name not in self._names:
            raise Misdirected(
                f"this server does not go by the name {name[:200]!r}",
                hint="Add it to FORAGER_API_ALLOWED_HOSTS.",
            )


def names_of(settings: Settings) -> frozenset[str]:
    """The names that fit the settings. A server open to others is protected by keys instead."""
    if not is_loopback(settings.api_host) and not settings.api_allowed_hosts:
        return frozenset({ANY})
    allowed = {name.lower() for name in settings.api_allowed_hosts}
    return LOCAL_NAMES | {settings.api_host.lower()} | allowed


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_origin(headers: Headers) -> None:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "")
    if origin is not None:
        foreign = origin.partition("://")[2] != headers.get("host", "")
    else:
        foreign = site in ("cross-site", "same-site")
    if foreign:
        raise Forbidden(
            "a page of another site sent this",
            hint="Call the API from a program, or from a page of this server.",
        )


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
