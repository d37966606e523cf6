"""Trying proxies when a person asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from forager.fetch.client import ClientOptions
from forager.fetch.proxies.probe import AT_ONCE, ProbeResult, probe
from forager.fetch.proxies.record import PickedProxy
from forager.fetch.proxies.service import Proxies


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a proxy's trial; one that had failed and works is used again."""

    proxy: PickedProxy
    result: ProbeResult
    has_recovered: bool


async def try_proxies(
    proxies: Proxies, ids: Sequence[int], options: ClientOptions, url: str | None = None
) -> list[Trial]:
    """Go through each proxy, a few at the same time; turn on those that have recovered."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def try_one(proxy: PickedProxy) -> Trial:
        async with turn:
            result = await probe(proxy, options, url)
        return Trial(proxy, result, result.ok and await proxies.recovered(proxy.id))

    opened = [await proxies.open(proxy_id) for proxy_id in ids]
    return await asyncio.gather(*map(try_one, opened))
