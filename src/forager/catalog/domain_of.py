"""The domains that a person means by a host: one rule for every filter, hold and webhook."""

from __future__ import annotations

from forager.db.database import Connection
from forager.errors import NotFound
from forager.fetch.budgets import parent_domains
from forager.fetch.domain_store import Domain, select_first, select_meant
from forager.fetch.domains import domain_name


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
    found = await select_meant(connection, [name, *parent_domains(name)])
    if not found:
        raise _unknown(name)
    return found


def _unknown(name: str) -> NotFound:
    return NotFound(f"there is no domain {name}", hint="`forager domains list` shows them.")
