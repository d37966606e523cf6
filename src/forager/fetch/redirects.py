"""Redirects: followed hop by hop, each checked; headers for one host stay with that host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from ada_url import URL

from forager.errors import ErrorKind, GiveUp
from forager.extract.urls import NormalizedUrl, Refusal, normalize
from forager.fetch.failure import classify_status
from forager.fetch.response import REDIRECTS, Request, Response

_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_CONDITIONAL_HEADERS = frozenset({"if-none-match", "if-modified-since"})

CheckHop = Callable[[str], Awaitable[None]]


class Fetcher(Protocol):
    """Sends one request. A redirect is a response like any other: the caller follows it."""

    async def fetch(self, request: Request) -> Response:
        """The response, whatever its status; raises WorkFailed without one."""
        ...


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect."""

    url: str
    status: int


def page_url(url: str) -> NormalizedUrl:
    """The normalized URL of a page; raises an error for any other URL."""
    normalized = normalize(url)
    if isinstance(normalized, Refusal):
        message = f"{url[:200]} cannot be fetched: {normalized.value}"
        raise GiveUp(message, kind=ErrorKind.VALIDATION)
    return normalized


async def any_hop(_: str) -> None:
    """Allow redirects to anywhere; the guard checks every address."""


async def follow(
    client: Fetcher, request: Request, check_hop: CheckHop = any_hop, max_hops: int = 10
) -> tuple[Response, tuple[Hop, ...]]:
    """Fetch, following redirects; `check_hop` raises an error to refuse a target."""
    hops: list[Hop] = []
    while True:
        response = await client.fetch(request)
        if response.status not in REDIRECTS:
            return response, tuple(hops)
        hops.append(Hop(response.url, response.status))
        target = _target(response, hops, max_hops)
        await check_hop(target)
        request = _redirected(request, target)


async def fetch_page(
    client: Fetcher, request: Request, check_hop: CheckHop = any_hop, max_hops: int = 10
) -> Response:
    """The response behind all redirects; raises the failure that its status means."""
    response, _ = await follow(client, request, check_hop, max_hops)
    if (failure := classify_status(response.status, response.headers)) is not None:
        raise failure
    return response


def _target(response: Response, hops: list[Hop], max_hops: int) -> str:
    target = response.redirect
    if target is None:
        location = response.headers.get("Location", "")[:200]
        raise _broken(f"{response.url} redirects to {location!r}, which is no web page")
    target = target.partition("#")[0]
    if any(hop.url == target for hop in hops):
        raise _broken(f"{hops[0].url} redirects in a loop, back to {target}")
    if len(hops) > max_hops:
        raise _broken(f"{hops[0].url} redirects more than {max_hops} times")
    return target


def _broken(message: str) -> GiveUp:
    return GiveUp(message, kind=ErrorKind.HTTP_SERVER)


def _redirected(request: Request, target: str) -> Request:
    """The request for the next URL, without headers for the first one only."""
    dropped = _CONDITIONAL_HEADERS
    if URL(request.url).origin != URL(target).origin:
        dropped = dropped | _PRIVATE_HEADERS
    headers = {
        name: value for name, value in request.headers.items() if name.lower() not in dropped
    }
    return replace(request, url=target, headers=headers, etag=None, last_modified=None)
