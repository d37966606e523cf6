"""The real servers, one of each kind for all tests of a process; a test leaves its server running.

A server that cannot be had or started fails the test: nothing is skipped here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from forager.db.database import Database
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.index import client, engine
from search_corpus import Corpus
from services.search_index import WAIT_LIMIT, Searched, searched
from services.servers.clickhouse import ClickHouseServer
from services.servers.minio import MinIO
from services.servers.opensearch import OpenSearch
from services.servers.pgbouncer import PgBouncer
from services.servers.rabbitmq import RabbitMQ
from services.servers.server import Server

# servers start within it, on machines much slower than today's
TIME_LIMIT = 600

AnyServer = TypeVar("AnyServer", bound=Server)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIME_LIMIT))


@contextmanager
def running(server: AnyServer) -> Iterator[AnyServer]:
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitMQ]:
    with running(RabbitMQ(tmp_path_factory.mktemp("rabbitmq"))) as server:
        yield server


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinIO]:
    with running(MinIO(tmp_path_factory.mktemp("minio"))) as server:
        yield server


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouseServer]:
    with running(ClickHouseServer(tmp_path_factory.mktemp("clickhouse"))) as server:
        yield server


@pytest.fixture(scope="session")
def opensearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearch]:
    with running(OpenSearch(tmp_path_factory.mktemp("opensearch"))) as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PgBouncer]:
    """In front of the PostgreSQL of the tests."""
    with running(PgBouncer(tmp_path_factory.mktemp("pgbouncer"), postgres)) as pool:
        yield pool


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@pytest.fixture
def longer_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search engine may take long to answer on a busy machine."""
    monkeypatch.setattr(engine, "ANSWER_LIMIT", WAIT_LIMIT)
    monkeypatch.setattr(client, "CONNECT_LIMIT", WAIT_LIMIT)


@pytest.fixture
async def index(
    opensearch: OpenSearch, database: Database, longer_limits: None
) -> AsyncIterator[Searched]:
    async with searched(opensearch, database, INDEXED_SECTIONS) as index:
        yield index


@pytest.fixture
async def empty(
    opensearch: OpenSearch, database: Database, longer_limits: None
) -> AsyncIterator[Searched]:
    """An engine that is not in use yet."""
    async with searched(opensearch, database) as index:
        yield index
