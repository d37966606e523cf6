"""Names to addresses, with the guard in between: nothing unchecked is ever connected to."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from aiohttp.abc import AbstractResolver, ResolveResult

from forager.fetch.guard import GuardPolicy, refused

# lookups that hang must not starve the rest of the process of its threads
_THREADS = 16


class Resolver(Protocol):
    """Where addresses of names come from."""

    async def resolve(self, host: str) -> list[str]:
        """All addresses of a name; OSError if there are none."""

    async def close(self) -> None:
        """Let go of what the resolver holds."""


class SystemResolver:
    """The operating system's resolver, on threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="forager-dns")

    async def resolve(self, host: str) -> list[str]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _lookup, host)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        # the codec refuses labels that are empty or too long before any lookup is made
        raise OSError(f"{host} is not a host name: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedResolver(AbstractResolver):
    """Gives the connector only addresses that the guard lets pass."""

    def __init__(self, resolver: Resolver, guard: GuardPolicy) -> None:
        self._resolver = resolver
        self._guard = guard

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        addresses = await self._resolver.resolve(host)
        if not addresses:
            raise OSError(f"{host} has no address")
        labels = {address: self._guard.refusal(address, host) for address in addresses}
        allowed = [address for address, label in labels.items() if label is None]
        if not allowed:
            raise refused(addresses[0], host, labels[addresses[0]] or "")
        return [_result(host, address, port, family) for address in allowed]

    async def close(self) -> None:
        """The resolver underneath belongs to the client, which closes it."""


def unresolved(host: str, port: int) -> ResolveResult:
    """A name as it is, for a proxy that resolves it."""
    return _result(host, host, port, socket.AF_UNSPEC)


def _result(host: str, address: str, port: int, family: socket.AddressFamily) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=family,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
