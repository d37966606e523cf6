"""Following redirects, hop by hop, each checked before it is fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from ada_url import URL

from forager.errors import ErrorKind, GiveUp
from forager.fetch.response import REDIRECTS, Request, Response

# credentials are meant for the origin they were given for
_PRIVATE_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_CONDITIONAL_HEADERS = frozenset({"if-none-match", "if-modified-since"})

CheckHop = Callable[[str], Awaitable[None]]


class Fetcher(Protocol):
    """A client, or something that sends what it is given through one."""

    async def fetch(self, request: Request) -> Response: ...


@dataclass(frozen=True, slots=True)
class Hop:
    """One answer that pointed elsewhere."""

    url: str
    status: int


@dataclass(frozen=True, slots=True)
class Followed:
    """The last response, and the hops that led to it."""

    response: Response
    hops: tuple[Hop, ...]


async def follow(
    client: Fetcher, request: Request, check_hop: CheckHop, max_hops: int = 10
) -> Followed:
    """Fetch, following redirects; `check_hop` raises to refuse a target before it is fetched."""
    hops: list[Hop] = []
    while True:
        response = await client.fetch(request)
        if response.status not in REDIRECTS:
            return Followed(response, tuple(hops))
        hops.append(Hop(response.url, response.status))
        target = _target(response, hops, max_hops)
        await check_hop(target)
        request = _redirected(request, target)


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
    """The same request for another URL, without what was meant for the first one only."""
    dropped = _CONDITIONAL_HEADERS
    if URL(request.url).origin != URL(target).origin:
        dropped = dropped | _PRIVATE_HEADERS
    headers = {
        name: value for name, value in request.headers.items() if name.lower() not in dropped
    }
    return replace(request, url=target, headers=headers, etag=None, last_modified=None)
