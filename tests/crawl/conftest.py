"""Crawls in this process, on the loop that they run on, with every commit checked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import uvloop

from crawl.crawling import Crawls, check_every_commit
from forager.crawl import engine
from forager.crawl.visit import gate
from forager.db.database import Database
from forager.fetch.client import ClientOptions
from forager.fetch.response import ResponseLimits
from forager.settings import Settings
from servers.site import Site


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def sandboxes(kept_sandboxes: None) -> None:
    """Crawls share extraction processes."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """The delay of retries does not grow, so that a killed crawl resumes soon."""
    return Settings(**(settings.model_dump() | {"retry_delay_max": 0.05}))


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with site.served():
        yield site


@pytest.fixture
def other() -> Iterator[Site]:
    """A second site; its port makes it another host."""
    site = Site()
    with site.served():
        yield site


@pytest.fixture
def crawls(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Crawls:
    check_every_commit(monkeypatch, database)
    monkeypatch.setattr(engine, "BATCH_SECONDS", engine.STARVING_SECONDS)
    return Crawls(database, settings)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a client that has little time."""
    make = gate.client_options

    def make_small(*arguments: object) -> ClientOptions:
        limits = ResponseLimits(connect=5, read=1.5, total=3, body=2 * 1024 * 1024)
        return replace(make(*arguments), limits=limits)  # type: ignore[arg-type]

    monkeypatch.setattr(gate, "client_options", make_small)
