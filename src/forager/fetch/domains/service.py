"""Domains: their crawl settings, and which domain covers a host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypedDict

import ada_url
import psycopg
from publicsuffixlist import PublicSuffixList

from forager.amounts import LONGEST_INTERVAL, SHORTEST_INTERVAL
from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Connection, Database
from forager.db.transactions import InTransaction
from forager.errors import AlreadyThere, GiveUp, InvalidInput, NotFound
from forager.extract.hosts import base_url, host_name, parent_domains
from forager.extract.wildcard import Pattern
from forager.fetch.domains import Domain, store
from forager.fetch.domains.store import (
    CoveringDomain,
    check_region,
    hold_domain,
    select_first,
    select_meant,
)
from forager.fetch.guard import GuardPolicy
from forager.hints import Hint, action
from forager.settings.crawling import RenderMode, parse_render

__all__ = ["CoveringDomain", "hold_domain"]

MAX_DELAY = 86400.0
MAX_CONCURRENCY = 10_000
MAX_PROXY_RATE = 5
MAX_PATTERNS = 100

_HOST = re.compile(
    r"(?=.{1,260}$)(?:\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?"
)

_CURRENCY = re.compile(r"[A-Z]{3}")


class DomainChanges(TypedDict, total=False):
    """Settings to change. None unsets one: the option of the crawl or the default applies."""

    delay: float | None
    concurrency: int | None
    active: bool
    per_proxy_only: bool
    # requests per second of each proxy
    proxy_rate: float | None
    # the recrawl interval of its tasks, and the bounds of an adapted one
    every: timedelta | None
    adaptive: bool | None
    shortest: timedelta | None
    longest: timedelta | None
    proxies: bool | None
    allow_private: bool
    currency: str | None
    # only workers of this region crawl it
    region: str | None
    # which pages are rendered (None: auto), and patterns of URLs that always are
    render: RenderMode | None
    render_urls: Sequence[str]


_INTERVAL = (SHORTEST_INTERVAL, LONGEST_INTERVAL, "an interval must be from 1s to 10 years", None)
_RANGES: dict[str, tuple[Any, Any, str, str | None]] = {
    "delay": (0, MAX_DELAY, f"the delay must be 0 to {MAX_DELAY:g} seconds", None),
    "concurrency": (
        1,
        MAX_CONCURRENCY,
        f"the concurrency must be 1 to {MAX_CONCURRENCY}",
        "To stop requests to a domain, disable it.",
    ),
    "proxy_rate": (
        1,
        MAX_PROXY_RATE,
        f"requests per second and proxy must be 1 to {MAX_PROXY_RATE}",
        "For fewer requests, set a delay, per proxy or in total.",
    ),
    **dict.fromkeys(("every", "shortest", "longest"), _INTERVAL),
}


def _checked(changes: DomainChanges) -> dict[str, Any]:
    values: dict[str, Any] = dict(changes)
    for name, (least, most, rule, hint) in _RANGES.items():
        value = values.get(name)
        if value is not None and not least <= value <= most:
            raise InvalidInput(f"{rule}, not {value}", hint=hint)
    _check_currency(values.get("currency"))
    check_region(values.get("region"))
    if values.get("render") is not None:
        values["render"] = parse_render(values["render"]).value
    if "render_urls" in values:
        values["render_urls"] = _checked_patterns(values["render_urls"])
    return values


class Domains:
    """All operations on domains: their limits, holds and settings.

    NotFound is raised for a name without a row, InvalidInput for a value that cannot work. A
    subdomain without a row of its own has the settings of its parent domain:

        domains = Domains(database)
        await domains.set("shop.example.org", DomainChanges(delay=2.0))
        domain = await domains.get("www.shop.example.org")
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_domains(
        self,
        *,
        active: bool | None = None,
        slowed: bool = False,
        region: str | None = None,
        text: str | None = None,
        on_hold: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Domain]:
        """Domains by name, a page at a time; `slowed`: only rate-limited hosts.

        `region`: only domains of this region. `text`: only names that contain it. `on_hold`: only
        domains that are paused, stopped or disabled.
        """
        check_limit(limit)
        found = await self._database.run(
            store.select_domains,
            after=None if cursor is None else _decode(cursor),
            limit=limit + 1,
            active=active,
            slowed=slowed,
            region=region,
            text=None if text is None else text.lower(),
            on_hold=on_hold,
        )
        return page_of(found, limit, lambda domain: encode_values(domain.domain_name))

    async def get(self, host: str) -> Domain:
        """The row that applies to a host: its own, or that of its nearest parent domain."""
        return await self._database.run(domain_of, host)

    async def add(self, host: str, changes: DomainChanges | None = None) -> Domain:
        """Create a row for a host, so that it has separate settings."""
        name = domain_name(host)
        values = _checked(changes or {})
        with _report_bounds():
            async with self._database.transaction() as connection:
                await store.lock_regions(connection)
                if not await store.insert_domain(connection, name, _base_url(host, name)):
                    raise AlreadyThere(
                        f"there is a domain {name} already",
                        hint=Hint("{} changes it.", action("domains set", name)),
                    )
                await store.update_domain(connection, name, values)
                await store.move_jobs(connection, name)
                return await domain_of(connection, name)

    async def set(self, host: str, changes: DomainChanges) -> Domain:
        """Change a domain; running crawls apply the change within seconds."""
        name = domain_name(host)
        values = _checked(changes)
        with _report_bounds():
            async with self._database.transaction() as connection:
                if "region" in values:
                    await store.lock_regions(connection)
                if not await store.update_domain(connection, name, values):
                    raise _unknown(name)
                if "region" in values:
                    await store.move_jobs(connection, name)
                return await domain_of(connection, name)

    async def set_many(self, hosts: Sequence[str], changes: DomainChanges) -> list[Domain]:
        """Change several domains together, or none; `*` in a name stands for any characters."""
        async with self._database.connection() as connection:
            names = [name for host in hosts for name in await _names_like(connection, host)]
        async with self._database.transaction() as connection:
            within = Domains(InTransaction(self._database, connection))
            return [await within.set(name, changes) for name in sorted(set(names))]

    async def set_traffic_delay(self, host: str, delay: float | None) -> Domain:
        """Send requests no faster than this, whatever the other settings are; None lifts it."""
        name = domain_name(host)
        async with self._database.transaction() as connection:
            if not await store.update_traffic_delay(connection, name, delay):
                raise _unknown(name)
            return await domain_of(connection, name)

    async def forget_slow_down(self, host: str) -> Domain:
        """Reset the slow-down of a host, including its Retry-After."""
        name = domain_name(host)
        async with self._database.transaction() as connection:
            if not await store.forget_slow_down(connection, name):
                raise _unknown(name)
            return await domain_of(connection, name)


def domain_name(text: str) -> str:
    """The name of a domain, given as a host with or without a port, or as a URL."""
    url = text.strip()
    if "://" not in url:
        # default ports are left out, as in the names of crawled hosts
        url = f"{'https' if url.endswith(':443') else 'http'}://{url}"
    try:
        parts = ada_url.parse_url(url, ("protocol", "host"))
    except ValueError:
        raise _not_a_host(text) from None
    name = str(parts["host"])
    if parts["protocol"] not in ("http:", "https:") or not _HOST.fullmatch(name):
        raise _not_a_host(text)
    return name


def _base_url(text: str, name: str) -> str:
    scheme, separator, _ = text.strip().lower().partition("://")
    return f"{scheme}://{name}/" if separator else base_url(name)


async def _names_like(connection: Connection, host: str) -> list[str]:
    """The names of the domains that match a pattern; without a `*`, the name itself."""
    if "*" not in host:
        return [domain_name(host)]
    found = await store.select_like(connection, host.strip().lower())
    if not found:
        raise NotFound(
            f"no domain matches {host[:200]}",
            hint=Hint("{} lists domains.", action("domains list")),
        )
    return found


def _check_currency(currency: str | None) -> None:
    if currency is not None and not _CURRENCY.fullmatch(currency):
        raise InvalidInput(
            f"{currency[:20]!r} is not a currency", hint="Write it in three letters, as EUR or USD."
        )


def _checked_patterns(patterns: Sequence[str]) -> list[str]:
    if len(patterns) > MAX_PATTERNS:
        raise InvalidInput(f"a domain has at most {MAX_PATTERNS} patterns of URLs to render")
    return [Pattern.compile(text).text for text in patterns]


@contextmanager
def _report_bounds() -> Iterator[None]:
    """Report bounds of intervals that contradict the stored ones."""
    try:
        yield
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "domains_frequencies_check":
            raise
        raise InvalidInput("the shortest interval must be at most the longest") from None


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no domain {name}",
        hint=Hint(
            "{} lists domains, {} adds it.", action("domains list"), action("domains add", name)
        ),
    )


def _not_a_host(text: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:200]!r} is not a host", hint="Expected: example.com, example.com:8080 or a URL."
    )


def _decode(cursor: str) -> str:
    match decode_values(cursor):
        case [str(name)] if name and "\0" not in name:
            return name
    raise unknown_cursor()


async def domain_of(connection: Connection, host: str) -> Domain:
    """The row that applies to a host: its own, or that of its nearest parent domain."""
    name = domain_name(host)
    found = await select_first(connection, [name, *parent_domains(name)])
    if found is None:
        raise _unknown(name)
    return found


async def domains_of(connection: Connection, host: str) -> list[int]:
    """The ids of the row that applies to a host, and of all rows of its subdomains.

    So `example.com` includes its `www.`, whether or not that has a separate row.
    """
    name = domain_name(host)
    return await _covering_ids(connection, [name, *parent_domains(name)])


async def domains_below(connection: Connection, host: str) -> list[int]:
    """The ids of the rows of a host and its subdomains, for operations that delete."""
    return await _covering_ids(connection, [domain_name(host)])


async def _covering_ids(connection: Connection, names: Sequence[str]) -> list[int]:
    # `co.uk` does not mean every shop there, unless it has a row
    is_suffix = _suffixes().is_public(host_name(names[0]))
    if is_suffix and await select_first(connection, names) is None:
        raise _unknown(names[0])
    found = await select_meant(connection, names)
    if not found:
        raise _unknown(names[0])
    return found


@cache
def _suffixes() -> PublicSuffixList:
    # an unknown suffix is a name in a private network, and may cover its subdomains
    return PublicSuffixList(accept_unknown=False)


async def cover_hosts(
    connection: Connection, hosts: set[str], *, allow_private: bool
) -> tuple[dict[str, CoveringDomain], dict[str, str | Hint]]:
    """The domain of each host, created where there is none; and why some hosts are rejected."""
    if not hosts:
        return {}, {}
    covers = await store.select_covers(connection, hosts)
    refused: dict[str, str | Hint] = {}
    for host in sorted(hosts):
        known = covers.get(host)
        reason = _refusal(
            host, allowed=allow_private or (known is not None and known.allow_private)
        )
        if reason is not None:
            refused[host] = reason
    missing = hosts - covers.keys() - refused.keys()
    if missing:
        # of a shop and its subdomains in one list, the row of the shop covers all
        tops = {host for host in missing if not missing.intersection(parent_domains(host))}
        await store.insert_domains(connection, tops)
        covers = await store.select_covers(connection, hosts - refused.keys())
    kept = {host: cover for host, cover in covers.items() if host not in refused}
    if allow_private and kept:
        await store.allow_private(connection, sorted({cover.id for cover in kept.values()}))
    return kept, refused


def _refusal(host: str, *, allowed: bool) -> str | Hint | None:
    """Why the host is rejected; a name is checked again when it is resolved."""
    try:
        GuardPolicy(allow_private=allowed).check_unresolved(host_name(host))
    except GiveUp as error:
        return Hint("{}; {}", error.message, error.hint) if error.hint else error.message
    return None
