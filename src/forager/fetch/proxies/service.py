"""The proxies of an installation: their management, and the pool that runners use."""

from __future__ import annotations

import asyncio
import contextlib
import unicodedata
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Self, TypedDict
from urllib.parse import urlsplit

from forager.clock import wait_for_event
from forager.db.cursor import Page, page_of
from forager.db.database import Connection, Database
from forager.errors import (
    DatabaseUnavailable,
    DiskFull,
    GiveUp,
    InvalidInput,
    NotFound,
    NotPermitted,
)
from forager.extract.hosts import parent_domains
from forager.extract.text import storable_message
from forager.fetch.domains.store import check_region
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies import store
from forager.fetch.proxies.costs import UsageLog
from forager.fetch.proxies.proxy import (
    EncryptedProxy,
    PickedProxy,
    ProxyCost,
    ProxyRecord,
    ProxyScheme,
    ProxySpec,
    ProxyTally,
    check_cost,
)
from forager.hints import Hint, Option, action
from forager.logs import get_logger
from forager.secrets import Vault

log = get_logger("proxies")

FAILURES_ALLOWED = 10
"""A proxy with more failures than this in a row is disabled."""

QUIET_SECONDS = 30.0
"""A proxy that has succeeded within this time is not disabled."""

WRITE_INTERVAL = 1.0
LEAVE_WITHIN = 3.0
AVERAGE_OVER = 20
MAX_ID = 2**63 - 1
MAX_CREDENTIAL = 255  # bytes; SOCKS5 has one byte for the length
MAX_REASON = 500
MAX_RESPONSE_MS = 3_600_000.0


@dataclass(frozen=True, slots=True)
class AddedProxy:
    """An added proxy; `is_new` is False if it was known and got another password."""

    id: int
    is_new: bool


class ProxyChanges(TypedDict, total=False):
    """Values to change. None: workers of all regions may use it; its cost is unknown."""

    region: str | None
    cost: ProxyCost | None


def _columns(changes: ProxyChanges) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if "region" in changes:
        check_region(changes["region"])
        columns["region"] = changes["region"]
    if "cost" in changes:
        cost = changes["cost"]
        if cost is not None:
            check_cost(cost)
        for column in ("amount", "unit", "currency"):
            columns[f"cost_{column}"] = cost and getattr(cost, column)
    return columns


class Proxies:
    """All operations on proxies.

    NotFound is raised for an unknown ID, InvalidInput for credentials that no proxy can take, and
    NotPermitted for an address that the guard refuses.

        proxies = Proxies(database, Vault(settings))
        added = await proxies.add(ProxySpec.parse("http://user:secret@proxy.example.org:3128"))
    """

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def add(self, spec: ProxySpec, *, allow_private: bool = False) -> AddedProxy:
        """Add a proxy; the guard must allow its address."""
        _check_credentials(spec)
        _check_address(spec, allow_private)
        encrypted = None
        if spec.password is not None:
            encrypted = self._vault.encrypt(spec.password, _context(spec))
        proxy_id, is_new = await self._database.run(
            store.upsert_proxy,
            scheme=spec.scheme.value,
            host=spec.host,
            port=spec.port,
            username=spec.username,
            password=encrypted,
            allow_private=allow_private,
        )
        return AddedProxy(proxy_id, is_new)

    async def page(self, *, limit: int, after: int = 0) -> Page[ProxyRecord]:
        """Proxies by ID, a page at a time."""
        found = await self._database.run(store.select_records, after=after, limit=limit + 1)
        return page_of(found, limit, lambda proxy: proxy.id)

    async def get(self, proxy_id: int) -> ProxyRecord:
        """A proxy by its ID; raises NotFound."""
        found = await self._database.run(
            store.select_records, after=_checked_id(proxy_id) - 1, limit=1
        )
        if not found or found[0].id != proxy_id:
            raise _no_such_proxy(proxy_id)
        return found[0]

    async def ids(self) -> list[int]:
        """The IDs of all proxies."""
        return await self._database.run(store.select_ids)

    async def open(self, proxy_id: int) -> PickedProxy:
        """One proxy with its password, in any state; this does not count as a use."""
        found = await self._database.run(store.select_encrypted, _checked_id(proxy_id))
        if found is None:
            raise _no_such_proxy(proxy_id)
        return decrypted_proxy(found, self._vault)

    async def enable(self, proxy_id: int) -> ProxyRecord:
        """Use a proxy again, without its history of failures."""
        return await self._change(proxy_id, store.enable_proxy)

    async def disable(self, proxy_id: int, reason: str | None = None) -> ProxyRecord:
        """Do not use a proxy until it is enabled; the reason is shown."""
        message = storable_message(reason or "disabled by hand", MAX_REASON)
        return await self._change(proxy_id, lambda c, i: store.disable_proxy(c, i, message))

    async def set(self, proxy_id: int, changes: ProxyChanges) -> ProxyRecord:
        """Change the region or the cost of a proxy; workers apply a region at once."""
        columns = _columns(changes)
        return await self._change(proxy_id, lambda c, i: store.update_proxy(c, i, columns))

    async def remove(self, proxy_id: int) -> ProxyRecord:
        """Delete a proxy, and return it as it was."""
        return await self._change(proxy_id, store.delete_proxy)

    async def recovered(self, proxy_id: int) -> bool:
        """Enable a proxy that failures had disabled, after a successful probe."""
        return await self._database.run(store.recover_proxy, proxy_id)

    async def _change(
        self, proxy_id: int, change: Callable[[Connection, int], Awaitable[ProxyRecord | None]]
    ) -> ProxyRecord:
        changed = await self._database.run(change, _checked_id(proxy_id))
        if changed is None:
            raise _no_such_proxy(proxy_id)
        return changed


class ProxyPool:
    """Picks the least recently used proxy, and counts successes and failures.

    Counts are written about once a second. Use it as a context manager, which writes the rest.
    """

    def __init__(
        self, database: Database, vault: Vault, guard: GuardPolicy, *, region: str | None = None
    ) -> None:
        """`guard` is the one that the client applies to the addresses of proxies.

        Of the proxies with a region, only those of `region` are picked.
        """
        self._database = database
        self._vault = vault
        self._guard = guard
        self._region = region
        self._tallies: dict[int, ProxyTally] = {}
        self._usage = UsageLog(database)
        self._urgent = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._writer = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.cancel()
        (ended,) = await asyncio.gather(self._writer, return_exceptions=True)
        if not isinstance(ended, asyncio.CancelledError):
            log.error("the health of proxies was not written for a while", reason=str(ended))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_WITHIN):
                await self._write_if_possible(self.run_once, self._usage.run_once)

    async def pick(self, host: str, exclude: Collection[int] = ()) -> PickedProxy | None:
        """A proxy for this host, except those in `exclude`; None if no other is active."""
        names, private = [host, *parent_domains(host)], self._guard.allow_private
        async with self._database.connection() as connection:
            # with fewer proxies than runners, some share a proxy and wait for its slots
            for shared in (False, True):
                found = await store.pick(
                    connection,
                    names=names,
                    exclude=list(exclude),
                    private=private,
                    region=self._region,
                    shared=shared,
                )
                if found is not None:
                    return decrypted_proxy(found, self._vault)
        return None

    def succeeded(self, proxy_id: int, response_ms: float) -> None:
        """Count a request that the proxy delivered, whatever the server responded."""
        bounded = min(max(response_ms, 0.0), MAX_RESPONSE_MS)
        self._tallies.setdefault(proxy_id, ProxyTally()).succeed(bounded)

    def failed(self, proxy_id: int, reason: str) -> None:
        """Count a failure of the proxy (RotateProxy); too many in a row disable it."""
        tally = self._tallies.setdefault(proxy_id, ProxyTally())
        tally.fail(storable_message(reason, MAX_REASON))
        if tally.run > FAILURES_ALLOWED:
            self._urgent.set()

    def used(self, proxy_id: int, host: str, size: int) -> None:
        """Count the use of a proxy for its costs; written in batches."""
        self._usage.add(proxy_id, host, size)

    async def run(self) -> None:
        """Write once per interval, and at once when a proxy must be disabled."""
        while True:
            await wait_for_event(self._urgent, WRITE_INTERVAL)
            self._urgent.clear()
            await self._write_if_possible(self.run_once)
            if self._usage.is_due:
                await self._write_if_possible(self._usage.run_once)

    async def run_once(self) -> list[ProxyRecord]:
        """Write the counts; returns the proxies that were disabled."""
        tallies, self._tallies = self._tallies, {}
        if not tallies:
            return []
        try:
            async with self._database.transaction() as connection:
                await store.add_outcomes(connection, tallies, weight=AVERAGE_OVER)
                disabled = await store.disable_failing(
                    connection, list(tallies), allowed=FAILURES_ALLOWED, quiet=QUIET_SECONDS
                )
        except BaseException:
            self._take_back(tallies)
            raise
        for proxy in disabled:
            log.warning("proxy disabled", proxy=proxy.id, reason=proxy.disabled_reason)
        return disabled

    async def _write_if_possible(self, *writes: Callable[[], Awaitable[object]]) -> None:
        for write in writes:
            try:
                await write()
            except (DatabaseUnavailable, DiskFull) as error:
                log.warning("counts of proxies cannot be written now", reason=error.message)

    def _take_back(self, tallies: dict[int, ProxyTally]) -> None:
        for proxy_id, earlier in tallies.items():
            later = self._tallies.get(proxy_id)
            self._tallies[proxy_id] = earlier.followed_by(later) if later else earlier


def parse_address(text: str) -> ProxySpec:
    """Parse the address of a proxy; errors repeat no part of it, because it may be a secret."""
    spec = ProxySpec.parse(text.strip())
    rest = urlsplit(text.strip() if "://" in text else f"http://{text.strip()}")
    # a raw / ? or # in a password ends the address early, and the rest would look like a host
    if rest.path.strip("/") or rest.query or rest.fragment:
        raise InvalidInput(
            "the proxy address has text after the port",
            hint="In a user name or password write / as %2F, ? as %3F, # as %23, @ as %40.",
        )
    _check_credentials(spec)
    return spec


async def proxy_guard(database: Database) -> GuardPolicy:
    """The guard for the addresses of proxies: private ones are allowed if one proxy may be."""
    return GuardPolicy(allow_private=await database.run(store.any_private))


def decrypted_proxy(encrypted: EncryptedProxy, vault: Vault) -> PickedProxy:
    """A proxy that can be used, with its password."""
    scheme = ProxyScheme(encrypted.scheme)
    spec = ProxySpec(scheme, encrypted.host, encrypted.port, encrypted.username)
    if encrypted.password is not None:
        spec = replace(spec, password=vault.decrypt(encrypted.password, _context(spec)))
    return PickedProxy(encrypted.id, spec, encrypted.allow_private)


def _context(spec: ProxySpec) -> str:
    """Binds a stored password to its proxy and user."""
    return f"proxy {spec.address} {spec.username or ''}"


def _check_credentials(spec: ProxySpec) -> None:
    if ":" in (spec.username or "") and spec.scheme is not ProxyScheme.SOCKS5:
        raise InvalidInput("an HTTP proxy takes no user name with a colon in it")
    for text in (spec.username, spec.password):
        if text is None:
            continue
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
            raise InvalidInput("the proxy's credentials hold characters that no proxy takes")
        if len(text.encode()) > MAX_CREDENTIAL:
            raise InvalidInput(f"the proxy's credentials are longer than {MAX_CREDENTIAL} bytes")


def _check_address(spec: ProxySpec, allow_private: bool) -> None:
    try:
        GuardPolicy(allow_private=allow_private).check_unresolved(spec.host)
    except GiveUp:
        hint = None if allow_private else Hint("Set {} to allow it.", Option("allow_private"))
        raise NotPermitted(
            f"the proxy {spec.address} is not at a public address", hint=hint
        ) from None


def _checked_id(proxy_id: int) -> int:
    if not 0 < proxy_id <= MAX_ID:
        raise _no_such_proxy(proxy_id)
    return proxy_id


def _no_such_proxy(proxy_id: object) -> NotFound:
    return NotFound(
        f"there is no proxy {proxy_id}", hint=Hint("{} lists proxies.", action("proxies list"))
    )
