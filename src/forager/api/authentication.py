"""Which requests are allowed: by host name, origin and API key.

A page of another site can make a browser send requests here, which the header Origin shows; and
DNS can point a foreign name to this machine, which the header Host shows.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import URL, Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from forager.access.caller import LOCAL, Caller, Forbidden, Unauthorized
from forager.access.keys import SEND_KEY, any_key, authenticate
from forager.access.oidc import TokenVerifier
from forager.access.permits import Permits
from forager.api.oauth import PLACE, base_url
from forager.api.problems import WrongHost
from forager.db.database import Database
from forager.settings import Settings

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# health checks know an address and no host name, and reveal nothing
UNNAMED = frozenset({"/healthz", "/readyz"})
ANY = "*"


class Origins:
    """Rejects requests for another host name, and those that a browser sends for another site."""

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
            raise WrongHost(
                f"{name[:200]!r} is not a name of this server",
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
            "the request comes from a page of another site",
            hint="Call the API from a program, or from a page of this server.",
        )


def name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


# paths that begin so
MCP = "/mcp"
PROTECTED = ("/api/", MCP)
# the reference is public
OPEN = frozenset({"/api/openapi.json", "/api/docs"})
METRICS = "/metrics"
# headers that a proxy adds; one that does not is known by the name it passes on, or by its version
PROXY_HEADERS = frozenset(
    {
        "cdn-loop",
        "client-ip",
        "fastly-client-ip",
        "forwarded",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cluster-client-ip",
        "x-real-ip",
    }
)
PROXY_PREFIXES = ("cf-", "x-forwarded", "x-original-", "x-envoy-", "x-amzn-")


class Authentication:
    """Adds the caller to the state of the request, or rejects the request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        database: Database,
        settings: Settings,
        permits: Permits,
        verifier: TokenVerifier,
    ) -> None:
        self._app = app
        self._open = OPEN | {METRICS} if settings.metrics_open else OPEN
        self._database = database
        self._settings = settings
        self._verifier = verifier
        self._permits = permits
        # keys are never deleted: once one exists, this stays true
        self._keys_exist = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_protected(scope["path"]):
            try:
                caller = await self._caller(scope)
            except Unauthorized as error:
                error.metadata_url = self._metadata_url(scope)
                raise
            await self._permits.take(caller)
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    def _is_protected(self, path: str) -> bool:
        return (path.startswith(PROTECTED) or path == METRICS) and path not in self._open

    async def _caller(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        key = _key_of(headers)
        if key is not None:
            if self._verifier.is_configured and is_token(key):
                return await self._verifier.caller(key)
            return await authenticate(self._database, key)
        if not self._keys_exist:
            self._keys_exist = self._verifier.is_configured or await any_key(self._database)
        if self._keys_exist or not is_local(scope):
            raise Unauthorized("an API key is needed", hint=SEND_KEY)
        return LOCAL

    def _metadata_url(self, scope: Scope) -> str | None:
        if not self._verifier.is_configured:
            return None
        url = URL(scope=scope)
        base = base_url(self._settings, f"{url.scheme}://{url.netloc}")
        return f"{base}{PLACE}{MCP if scope['path'].startswith(MCP) else ''}"


def is_token(text: str) -> bool:
    """Whether this looks like a signed token (JWT); keys have no dots."""
    return text.count(".") == 2


def _key_of(headers: Headers) -> str | None:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value
    return headers.get("x-api-key")


def is_local(scope: Scope) -> bool:
    """Whether the request comes from this machine, and not through a proxy on it."""
    client, headers = scope.get("client"), Headers(scope=scope)
    if client is None or not is_loopback(client[0]):
        return False
    return not (
        scope.get("http_version") == "1.0"
        or not is_loopback(name_of(headers.get("host", "")))
        or any(name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES) for name in headers)
    )
