"""Embedding in a process of its own, after the command that published the pages."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys

import pytest

from forager.db.database import Database
from forager.documents.search import background
from forager.documents.search.background import LOCK, embed_all, embed_in_background
from forager.documents.search.semantic import SERVICE
from forager.documents.store import embeddings as store
from forager.services.report import identify, run_services
from forager.services.service import Service
from forager.settings import Settings
from search_corpus import Corpus
from support.waiting import eventually

PAGES = {f"/{number}": [("Heading", "A text about something.")] for number in range(3)}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"embeddings": "auto"})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    started: list[Settings] = []
    monkeypatch.setattr(background, "_start", started.append)
    return started


async def test_it_starts_only_for_what_nobody_else_embeds(
    database: Database, settings: Settings, started: list[Settings]
) -> None:
    assert await embed_in_background(database, settings)
    await Corpus(database).publish("d.example", PAGES)
    off = settings.model_copy(update={"embeddings": "off"})
    assert await embed_in_background(database, off)
    assert started == []
    assert await embed_in_background(database, settings)
    assert started == [settings]

    async def nothing() -> None: ...

    worker = [Service(name=SERVICE, every=60.0, step=nothing)]
    async with run_services(database, settings, identify("worker", None), worker):

        async def leaves_it() -> bool:
            started.clear()
            return await embed_in_background(database, settings) and not started

        await eventually(leaves_it)


async def test_the_caller_embeds_where_no_process_can_stay(
    database: Database, settings: Settings, started: list[Settings]
) -> None:
    await Corpus(database).publish("d.example", PAGES)
    update = {"database_url": None, "database_linger_seconds": 0}
    assert not await embed_in_background(database, settings.model_copy(update=update))
    assert started == []


async def test_one_process_embeds_one_waits_and_others_leave(
    database: Database, settings: Settings
) -> None:
    pytest.importorskip("wordllama", reason="there is no wheel for this Python")
    await Corpus(database).publish("d.example", PAGES)
    assert settings.database_url is not None
    environment = {
        **os.environ,
        "FORAGER_EMBEDDINGS": "auto",
        "FORAGER_HOME": str(settings.home),
        "FORAGER_DATABASE_URL": settings.database_url.get_secret_value(),
    }
    command = [sys.executable, "-m", background.__name__]
    settings.home.mkdir()
    with (settings.home / LOCK).open("ab") as lock:

        def is_locked(byte: int) -> bool:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except BlockingIOError:
                return True
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, byte)
            return False

        fcntl.lockf(lock, fcntl.LOCK_EX, 1, 0)
        with subprocess.Popen(command, env=environment) as waiting:
            try:
                await eventually(lambda: is_locked(1))
                another = await asyncio.create_subprocess_exec(*command, env=environment)
                assert await another.wait() == 0
                assert await database.run(store.can_be_embedded)
                fcntl.lockf(lock, fcntl.LOCK_UN, 1, 0)
                await eventually(lambda: waiting.poll() is not None)
            finally:
                waiting.kill()
        assert waiting.returncode == 0
    assert not await database.run(store.can_be_embedded)


async def test_it_ends_without_a_server(settings: Settings) -> None:
    await embed_all(settings.model_copy(update={"database_url": None}))
