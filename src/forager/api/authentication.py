"""Who is asking, found out before anything of a request is read."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from forager.access.caller import LOCAL, Caller
from forager.access.errors import Unauthorised
from forager.access.keys import any_key, authenticate
from forager.access.permits import Permits
from forager.api.origins import is_loopback, name_of
from forager.db.database import Database

# paths that begin so
PROTECTED = ("/api/", "/mcp")
# how to call the API is no secret
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
    """Puts the caller into the request's state, or refuses it."""

    def __init__(
        self, app: ASGIApp, *, database: Database, permits: Permits, metrics_open: bool
    ) -> None:
        self._app = app
        self._open = OPEN | {METRICS} if metrics_open else OPEN
        self._database = database
        self._permits = permits
        # keys are never deleted, so once there is one there is one for ever
        self._keys_exist = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_protected(scope["path"]):
            caller = await self._caller(scope)
            await self._permits.take(caller)
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)

    def _is_protected(self, path: str) -> bool:
        return (path.startswith(PROTECTED) or path == METRICS) and path not in self._open

    async def _caller(self, scope: Scope) -> Caller:
        headers = Headers(scope=scope)
        key = _key_of(headers)
        if key is not None:
            return await authenticate(self._database, key)
        if not self._keys_exist:
            self._keys_exist = await any_key(self._database)
        if self._keys_exist or not is_local(scope):
            raise Unauthorised(
                "an API key is needed",
                hint="Send `Authorization: Bearer fgr_…`; `forager keys create NAME` makes a key.",
            )
        return LOCAL


def _key_of(headers: Headers) -> str | None:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value
    return headers.get("x-api-key")


def is_local(scope: Scope) -> bool:
    """Whether it comes from this machine, and not through a proxy that stands on it."""
    client, headers = scope.get("client"), Headers(scope=scope)
    if client is None or not is_loopback(client[0]):
        return False
    return not (
        scope.get("http_version") == "1.0"
        or not is_loopback(name_of(headers.get("host", "")))
        or any(name in PROXY_HEADERS or name.startswith(PROXY_PREFIXES) for name in headers)
    )
