"""The domain that a person means by a host."""

from __future__ import annotations

from forager.db.database import Connection
from forager.errors import NotFound
from forager.fetch.budgets import parent_domains
from forager.fetch.domain_store import Domain, select_first
from forager.fetch.domains import domain_name


async def domain_of(connection: Connection, host: str) -> Domain:
    """The row that covers a host, or what to do if there is none."""
    name = domain_name(host)
    found = await select_first(connection, [name, *parent_domains(name)])
    if found is None:
        raise NotFound(f"there is no domain {name}", hint="`forager domains list` shows them.")
    return found
