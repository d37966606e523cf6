"""Cross-origin rules of the Fetch standard (CORS) for requests that Forager sends for a page.

Playwright answers preflight requests itself, and adds headers that let a page read any response.
So the rules are enforced here, before the browser gets a response.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ada_url import URL
from multidict import CIMultiDictProxy

from forager.errors import ErrorKind, GiveUp
from forager.fetch.response import Response
from forager.render.browser import ResourceRequest

SAFE_METHODS = frozenset({"GET", "HEAD", "POST"})
SAFE_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
# headers that a script may set without asking, and those that the browser sets
_SAFE_HEADERS = frozenset(
    {"accept", "accept-language", "content-language", "range", "origin", "referer", "user-agent",
     "accept-encoding", "connection", "content-length", "host", "cookie", "dnt", "cache-control",
     "pragma", "upgrade-insecure-requests", "priority", "save-data", "purpose"}
)  # fmt: skip
# what scripts read of them is the content; others are only used
_READABLE = frozenset({"xhr", "fetch"})
_USED = frozenset({"script", "document"})


def origin_of(url: str) -> str:
    return str(URL(url).origin)


def foreign_origin(request: ResourceRequest) -> str | None:
    """The origin that asks another one; None if it asks its own, or cannot read the response."""
    origin = request.headers.get("origin")
    return None if origin is None or origin == origin_of(request.url) else origin


def preflight_headers(request: ResourceRequest) -> dict[str, str] | None:
    """The headers of the preflight request that is due first; None if none is."""
    origin = foreign_origin(request)
    names = _unsafe_headers(request.headers)
    if origin is None or (request.method in SAFE_METHODS and not names):
        return None
    asked = {"Origin": origin, "Access-Control-Request-Method": request.method}
    return asked | ({"Access-Control-Request-Headers": ",".join(names)} if names else {})


def check_preflight(request: ResourceRequest, response: Response) -> None:
    """Raise an error unless the response to a preflight request allows the request."""
    origin = foreign_origin(request) or ""
    if not 200 <= response.status < 300 or not _allows(response, [origin]):
        raise _refused(f"{origin} may not send this request (CORS)")
    methods = _listed(response.headers, "Access-Control-Allow-Methods")
    if request.method not in SAFE_METHODS and not methods & {request.method.lower(), "*"}:
        raise _refused(f"method {request.method} is not allowed (CORS)")
    allowed = _listed(response.headers, "Access-Control-Allow-Headers")
    for name in _unsafe_headers(request.headers):
        if name not in allowed and ("*" not in allowed or name == "authorization"):
            raise _refused(f"header {name} is not allowed (CORS)")


def check_response(request: ResourceRequest, page: str, response: Response) -> None:
    """Raise an error if the page may not read the response, whose URL is the last one.

    The browser knows only the first URL. It compares headers that allow an origin, and the mode of
    credentials, itself; headers that are missing are the case that it cannot see.
    """
    first, last = origin_of(request.url), origin_of(response.url)
    origin = foreign_origin(request)
    if origin is not None:
        # behind a redirect of a foreign server, the origin of the page is no longer named
        origins = [origin] if first == last else ["null"]
        if origin != last and not _allows(response, origins):
            raise _refused(f"{origin} may not read this response (CORS)")
    elif first != last and _reveals(request, page) and not _allows(response, [first]):
        raise _refused(f"{first} may not read this response of {last} (CORS)")


def check_redirect(request: ResourceRequest, target: str) -> None:
    """Raise an error if a request that needed a preflight is redirected to another origin."""
    if preflight_headers(request) is not None and origin_of(target) != origin_of(request.url):
        raise _refused("a request with a preflight is redirected to another origin (CORS)")


def _reveals(request: ResourceRequest, page: str) -> bool:
    """Whether the browser would let the page read a response that comes from its own origin."""
    if request.type in _READABLE:
        return True
    return request.type not in _USED and origin_of(request.url) == origin_of(page)


def _allows(response: Response, origins: Iterable[str]) -> bool:
    values = response.headers.getall("Access-Control-Allow-Origin", [])
    return len(values) == 1 and values[0].strip() in {"*", *origins}


def _unsafe_headers(headers: Mapping[str, str]) -> list[str]:
    """The headers that need permission, in order."""
    names = {name for name in headers if not name.startswith(("sec-", "proxy-", ":"))}
    unsafe = names - _SAFE_HEADERS
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not media_type or media_type in SAFE_TYPES:
        unsafe.discard("content-type")
    return sorted(unsafe)


def _listed(headers: CIMultiDictProxy[str], name: str) -> set[str]:
    parts = ",".join(headers.getall(name, [])).split(",")
    return {part.strip().lower() for part in parts if part.strip()}


def _refused(message: str) -> GiveUp:
    return GiveUp(message, kind=ErrorKind.NOT_ALLOWED)
