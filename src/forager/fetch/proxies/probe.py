"""Probes of proxies; failing ones are probed until they recover."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aiohttp import ClientHttpProxyError
from python_socks import ProxyError

from forager.db.database import Database
from forager.errors import ErrorKind, RotateProxy, WorkFailed, error_text
from forager.extract.text import storable_message
from forager.fetch.client import Client, ClientOptions
from forager.fetch.failure import classify_status
from forager.fetch.proxies import store
from forager.fetch.proxies.proxy import EncryptedProxy, PickedProxy
from forager.fetch.proxies.service import MAX_REASON, Proxies, decrypted_proxy
from forager.fetch.response import Request, ResponseLimits
from forager.logs import get_logger
from forager.secrets import SecretsUnavailable, Vault
from forager.services.service import Service

log = get_logger("proxies")

# The name cannot exist, so no other host is affected: the response shows that the proxy listens,
# speaks the protocol and accepts the credentials.
NOWHERE = "https://probe.invalid/"
PROBE_LIMITS = ResponseLimits(connect=10, read=10, total=20)
LOOK_INTERVAL = 10.0
AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe; `status` is the HTTP status if a URL was requested."""

    proxy_id: int
    ok: bool
    seconds: float
    status: int | None = None
    error: str | None = None


async def probe(proxy: PickedProxy, options: ClientOptions, url: str | None = None) -> ProbeResult:
    """Fetch the URL through the proxy; without one, only check whether the proxy responds."""
    options = replace(options, proxy_guard=proxy.guard, limits=PROBE_LIMITS, proxy=None)
    began = time.perf_counter()
    async with Client(options) as client:
        status, error = await _outcome(client, proxy, url)
    seconds = time.perf_counter() - began
    return ProbeResult(proxy.id, error is None, seconds, status, error)


async def _outcome(
    client: Client, proxy: PickedProxy, url: str | None
) -> tuple[int | None, str | None]:
    try:
        response = await client.fetch(Request(url or NOWHERE, proxy=proxy.spec))
    except WorkFailed as error:
        is_ok = url is None and _proxy_answered(error)
        return None, None if is_ok else error.message
    failure = classify_status(response.status, response.headers) if url else None
    return response.status if url else None, failure.message if failure else None


def _proxy_answered(error: WorkFailed) -> bool:
    """Whether the proxy accepted the request, and failed to reach the host that does not exist."""
    if not isinstance(error, RotateProxy):
        return error.kind in (ErrorKind.NETWORK, ErrorKind.TLS)
    cause = error.__cause__
    if isinstance(cause, ClientHttpProxyError):
        return cause.status != 407
    return isinstance(cause, ProxyError) and cause.error_code is not None


class ProxyProber:
    """Probes failing proxies when they are due, and enables those that have recovered."""

    def __init__(
        self, database: Database, vault: Vault, options: ClientOptions, *, region: str | None = None
    ) -> None:
        self._database = database
        self._vault = vault
        self._options = options
        self._region = region

    def service(self) -> Service:
        """The background service that tests failing proxies."""
        return Service(
            name="proxy probes", every=LOOK_INTERVAL, step=self.run_once, first_within=0.0
        )

    async def run_once(self) -> list[ProbeResult]:
        """Test the proxies that are due."""
        due = await self._database.run(store.claim_probes, limit=AT_ONCE, region=self._region)
        results = await asyncio.gather(*map(self._probe, due))
        for result in results:
            await self._settle(result)
        return results

    async def _probe(self, encrypted: EncryptedProxy) -> ProbeResult:
        try:
            proxy = decrypted_proxy(encrypted, self._vault)
        except SecretsUnavailable as error:
            return ProbeResult(encrypted.id, False, 0.0, error=error.message)
        except Exception as error:  # of this proxy only: the others are probed all the same
            return ProbeResult(encrypted.id, False, 0.0, error=f"not usable: {error_text(error)}")
        return await probe(proxy, self._options)

    async def _settle(self, result: ProbeResult) -> None:
        async with self._database.connection() as connection:
            if result.ok:
                if await store.recover_proxy(connection, result.proxy_id):
                    log.info("proxy recovered", proxy=result.proxy_id)
            else:
                reason = storable_message(result.error or "unknown", MAX_REASON)
                await store.note_failed_probe(connection, result.proxy_id, reason)


@dataclass(frozen=True, slots=True)
class ProxyTrial:
    """A probe by hand; a failing proxy that has recovered is enabled."""

    proxy: PickedProxy
    result: ProbeResult
    has_recovered: bool


async def try_proxies(
    proxies: Proxies, ids: Sequence[int], options: ClientOptions, url: str | None = None
) -> list[ProxyTrial]:
    """Probe each proxy, a few at the same time; enable those that have recovered."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def try_one(proxy: PickedProxy) -> ProxyTrial:
        async with turn:
            result = await probe(proxy, options, url)
        return ProxyTrial(proxy, result, result.ok and await proxies.recovered(proxy.id))

    opened = [await proxies.open(proxy_id) for proxy_id in ids]
    return await asyncio.gather(*map(try_one, opened))
