"""Domains: their crawl settings, and which domain covers a host."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import Any, Final, Literal

import ada_url
import psycopg
from publicsuffixlist import PublicSuffixList

from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Connection, Database
from forager.db.outages import InTransaction
from forager.errors import AlreadyThere, InvalidInput, NotFound
from forager.extract.hosts import base_url, host_name, parent_domains
from forager.extract.wildcard import Pattern
from forager.fetch.domains import Domain, store
from forager.fetch.domains.store import check_region, select_first, select_meant
from forager.hints import Hint, action
from forager.settings.crawling import RenderMode, parse_render

MAX_DELAY = 86400.0
MAX_CONCURRENCY = 10_000
MAX_PROXY_RATE = 5
MAX_PATTERNS = 100
SHORTEST_INTERVAL = timedelta(seconds=1)
LONGEST_INTERVAL = timedelta(days=3660)

_HOST = re.compile(
    r"(?=.{1,260}$)(?:\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?)(?::\d{1,5})?"
)

_CURRENCY = re.compile(r"[A-Z]{3}")


class _Unchanged(Enum):
    UNCHANGED = "unchanged"


UNCHANGED: Final = _Unchanged.UNCHANGED
Unchanged = Literal[_Unchanged.UNCHANGED]


@dataclass(frozen=True, slots=True)
class DomainChanges:
    """Settings to change. None means not set: the crawl's option or the default applies."""

    delay: float | Unchanged | None = UNCHANGED
    concurrency: int | Unchanged | None = UNCHANGED
    active: bool | Unchanged = UNCHANGED
    per_proxy_only: bool | Unchanged = UNCHANGED
    # requests per second of each proxy
    proxy_rate: float | Unchanged | None = UNCHANGED
    # how its tasks are treated
    every: timedelta | Unchanged | None = UNCHANGED
    adaptive: bool | Unchanged | None = UNCHANGED
    shortest: timedelta | Unchanged | None = UNCHANGED
    longest: timedelta | Unchanged | None = UNCHANGED
    proxies: bool | Unchanged | None = UNCHANGED
    allow_private: bool | Unchanged = UNCHANGED
    currency: str | Unchanged | None = UNCHANGED
    # whose workers alone ask it for anything
    region: str | Unchanged | None = UNCHANGED
    # which pages are rendered (None: auto), and patterns of URLs that always are
    render: RenderMode | Unchanged | None = UNCHANGED
    render_urls: Sequence[str] | Unchanged = UNCHANGED

    def named(self) -> dict[str, Any]:
        """The values that are to be set, checked."""
        given = {name: getattr(self, name) for name in self.__slots__}
        changes = {name: value for name, value in given.items() if value is not UNCHANGED}
        _check_delay(changes.get("delay"))
        _check_concurrency(changes.get("concurrency"))
        _check_rate(changes.get("proxy_rate"))
        for name in ("every", "shortest", "longest"):
            _check_interval(changes.get(name))
        _check_currency(changes.get("currency"))
        check_region(changes.get("region"))
        if changes.get("render") is not None:
            changes["render"] = parse_render(changes["render"]).value
        if "render_urls" in changes:
            changes["render_urls"] = _checked_patterns(changes["render_urls"])
        return changes


class Domains:
    """What people and programs can do with domains."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_domains(
        self,
        *,
        active: bool | None = None,
        slowed: bool = False,
        region: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Domain]:
        """Domains by name, a page at a time; `slowed`: only rate-limited hosts.

        `region`: only those that are tied to it.
        """
        check_limit(limit)
        found = await self._database.run(
            store.select_domains,
            after=None if cursor is None else _decode(cursor),
            limit=limit + 1,
            active=active,
            slowed=slowed,
            region=region,
        )
        return page_of(found, limit, lambda domain: encode_values(domain.domain_name))

    async def get(self, host: str) -> Domain:
        """The row that applies to a host: its own, or that of the nearest domain above it."""
        name = domain_name(host)
        found = await self._database.run(store.select_first, [name, *parent_domains(name)])
        if found is None:
            raise _unknown(name)
        return found

    async def add(self, host: str, changes: DomainChanges | None = None) -> Domain:
        """Create a row for a host, so that it has separate settings."""
        name = domain_name(host)
        named = (changes or DomainChanges()).named()
        with _sensible_bounds():
            async with self._database.transaction() as connection:
                await store.lock_regions(connection)
                if not await store.insert_domain(connection, name, _base_url(host, name)):
                    raise AlreadyThere(
                        f"there is a domain {name} already",
                        hint=Hint("{} changes it.", action("domains set", name)),
                    )
                await store.update_domain(connection, name, named)
                await store.move_jobs(connection, name)
                return await _existing(connection, name)

    async def set(self, host: str, changes: DomainChanges) -> Domain:
        """Change a domain; running crawls heed it within seconds."""
        name = domain_name(host)
        named = changes.named()
        with _sensible_bounds():
            async with self._database.transaction() as connection:
                if "region" in named:
                    await store.lock_regions(connection)
                if not await store.update_domain(connection, name, named):
                    raise _unknown(name)
                if "region" in named:
                    await store.move_jobs(connection, name)
                return await _existing(connection, name)

    async def set_many(self, hosts: Sequence[str], changes: DomainChanges) -> list[Domain]:
        """Change several domains together, or none; `*` in a name stands for any characters."""
        async with self._database.connection() as connection:
            names = [name for host in hosts for name in await _names_like(connection, host)]
        async with self._database.transaction() as connection:
            within = Domains(InTransaction(self._database, connection))
            return [await within.set(name, changes) for name in sorted(set(names))]

    async def forget_slow_down(self, host: str) -> Domain:
        """Reset the slow-down of a host, including its Retry-After."""
        name = domain_name(host)
        async with self._database.transaction() as connection:
            if not await store.forget_slow_down(connection, name):
                raise _unknown(name)
            return await _existing(connection, name)


def domain_name(text: str) -> str:
    """The name of the domain that a person means by a host, with or without port, or by a URL."""
    url = text.strip()
    if "://" not in url:
        # so that either of the default ports is left out, as in the names of hosts that are crawled
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


async def _existing(connection: Connection, name: str) -> Domain:
    found = await store.select_first(connection, [name])
    if found is None:
        raise _unknown(name)
    return found


async def _names_like(connection: Connection, host: str) -> list[str]:
    """The names of the domains that match a pattern, or the one that is named."""
    if "*" not in host:
        return [domain_name(host)]
    found = await store.select_like(connection, host.strip().lower())
    if not found:
        raise NotFound(
            f"no domain matches {host[:200]}",
            hint=Hint("{} lists domains.", action("domains list")),
        )
    return found


def _check_delay(delay: float | None) -> None:
    if delay is not None and not (math.isfinite(delay) and 0 <= delay <= MAX_DELAY):
        raise InvalidInput(f"the delay must be 0 to {MAX_DELAY:g} seconds, not {delay:g}")


def _check_concurrency(concurrency: int | None) -> None:
    if concurrency is not None and not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(
            f"the concurrency must be 1 to {MAX_CONCURRENCY}, not {concurrency}",
            hint="To stop requests to a domain, disable it.",
        )


def _check_rate(rate: float | None) -> None:
    if rate is not None and not 1 <= rate <= MAX_PROXY_RATE:
        raise InvalidInput(
            f"requests per second and proxy must be 1 to {MAX_PROXY_RATE}, not {rate:g}",
            hint="For fewer requests, set a delay, per proxy or in total.",
        )


def _check_interval(every: timedelta | None) -> None:
    if every is not None and not SHORTEST_INTERVAL <= every <= LONGEST_INTERVAL:
        raise InvalidInput("an interval must be from 1s to 10 years")


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
def _sensible_bounds() -> Iterator[None]:
    """Which bound is there already is known to the database alone."""
    try:
        yield
    except psycopg.errors.CheckViolation as error:
        if error.diag.constraint_name != "domains_frequencies_check":
            raise
        raise InvalidInput("the shortest interval must be at most the longest") from None


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no domain {name}", hint=Hint("{} adds it.", action("domains add", name))
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
    """The row that covers a host, or what to do if there is none."""
    name = domain_name(host)
    found = await select_first(connection, [name, *parent_domains(name)])
    if found is None:
        raise _unknown_domain(name)
    return found


async def domains_of(connection: Connection, host: str) -> list[int]:
    """The ids of the row that covers a host, and of all rows for hosts below it.

    So `example.com` means its `www.` too, whether or not that has a separate row.
    """
    name = domain_name(host)
    return await _covering_ids(connection, [name, *parent_domains(name)])


async def domains_below(connection: Connection, host: str) -> list[int]:
    """The same without what only covers the host: what is lost must have been named."""
    return await _covering_ids(connection, [domain_name(host)])


async def _covering_ids(connection: Connection, names: Sequence[str]) -> list[int]:
    # `co.uk` does not mean every shop there, unless it has a row
    if _is_public_suffix(names[0]) and await select_first(connection, names) is None:
        raise _unknown_domain(names[0])
    found = await select_meant(connection, names)
    if not found:
        raise _unknown_domain(names[0])
    return found


def _is_public_suffix(name: str) -> bool:
    return _suffixes().is_public(host_name(name))


@cache
def _suffixes() -> PublicSuffixList:
    # a suffix on no list is a name in a private network, and may cover everything below it
    return PublicSuffixList(accept_unknown=False)


def _unknown_domain(name: str) -> NotFound:
    return NotFound(
        f"there is no domain {name}", hint=Hint("{} lists domains.", action("domains list"))
    )
