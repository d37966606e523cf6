"""A real server on a real socket, over the test's own database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from api.client import Api
from forager.access.caller import Scope
from forager.api.app import create_app
from forager.db.database import Database
from forager.settings import Settings
from support.api_server import api_server
from support.keys import make_key

Keyed = Callable[..., Awaitable[Api]]


@pytest.fixture
def api_settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"api_port": 0})


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The OpenAPI description, which takes a second to build and needs no database."""
    database: Any = object()
    return create_app(Settings(home=tmp_path_factory.mktemp("home")), database).openapi()


@pytest.fixture
async def address(api_settings: Settings, database: Database) -> AsyncIterator[str]:
    """Where the server is; it is stopped gracefully at the end."""
    async with api_server(api_settings, database) as served:
        yield served


@pytest.fixture
async def api(address: str) -> AsyncIterator[Api]:
    """A client on this machine: an admin while there is no key."""
    async with Api(address) as client:
        yield client


@pytest.fixture
async def keyed(address: str, database: Database) -> AsyncIterator[Keyed]:
    """Makes clients with a key of a scope, by default each with a new owner."""
    clients: list[Api] = []

    async def make(scope: Scope = Scope.OPERATE, **how: object) -> Api:
        made = await make_key(database, "test", scope=scope, **how)
        client = Api(address, key=made.text, owner=made.key.user_id)
        clients.append(await client.__aenter__())
        return client

    yield make
    for client in clients:
        await client.__aexit__()


@pytest.fixture
def noon(database_url: str) -> None:
    """The database of this test has noon, whatever the time is: no day ends while it runs.

    Statements that ask for `now()` get a time as far from the real one as noon was at the start.
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT extract(epoch FROM date_trunc('day', now(), 'UTC') + interval '12 hours'"
            " - now())::float8, current_database()"
        ).fetchone()
        assert row is not None
        shift, name = row
        connection.execute("CREATE SCHEMA clock")
        connection.execute(
            sql.SQL(
                "CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql"
                " RETURN pg_catalog.now() + {} * interval '1 second'"
            ).format(sql.Literal(shift))
        )
        connection.execute(
            sql.SQL("ALTER DATABASE {} SET search_path = clock, pg_catalog, public").format(
                sql.Identifier(name)
            )
        )
