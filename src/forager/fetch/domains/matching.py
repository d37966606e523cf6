"""The domains that a person means by a host: one rule for every filter, hold and webhook."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from publicsuffixlist import PublicSuffixList

from forager.db.database import Connection
from forager.errors import NotFound
from forager.extract.hosts import host_name, parent_domains
from forager.fetch.domains.domain import Domain
from forager.fetch.domains.service import domain_name
from forager.fetch.domains.store import select_first, select_meant
from forager.hints import Hint, action


async def domain_of(connection: Connection, host: str) -> Domain:
    """The row that covers a host, or what to do if there is none."""
    name = domain_name(host)
    found = await select_first(connection, [name, *parent_domains(name)])
    if found is None:
        raise _unknown(name)
    return found


async def domains_of(connection: Connection, host: str) -> list[int]:
    """The ids of the row that covers a host, and of all rows for hosts below it.

    So `example.com` means its `www.` too, whether or not that has a row of its own.
    """
    name = domain_name(host)
    return await _meant(connection, [name, *parent_domains(name)])


async def domains_below(connection: Connection, host: str) -> list[int]:
    """The same without what only covers the host: what is lost must have been named."""
    return await _meant(connection, [domain_name(host)])


async def _meant(connection: Connection, names: Sequence[str]) -> list[int]:
    # nobody who says `co.uk` means every shop there, unless it has a row
    if _is_public_suffix(names[0]) and await select_first(connection, names) is None:
        raise _unknown(names[0])
    found = await select_meant(connection, names)
    if not found:
        raise _unknown(names[0])
    return found


def _is_public_suffix(name: str) -> bool:
    return _suffixes().is_public(host_name(name))


@cache
def _suffixes() -> PublicSuffixList:
    # what is on no list is a name of one's own network, and may mean all that is below it
    return PublicSuffixList(accept_unknown=False)


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no domain {name}", hint=Hint("{} lists domains.", action("domains list"))
    )
