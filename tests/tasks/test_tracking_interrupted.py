"""An import that is interrupted: what reads its lines sits in a thread, and cannot be cancelled."""

from __future__ import annotations

import asyncio
import io
import signal
import sys
import threading
from pathlib import Path

import pytest

from forager.db.database import Database
from forager.settings import Settings
from forager.tasks.imports import read_requests
from forager.tasks.service import Tasks
from forager.tasks.tracking import CHUNK
from forager.tasks.tracking_request import RequestedTerms
from support.sql import fetch_value

FORAGER = Path(sys.executable).with_name("forager")


class SlowFile(io.BytesIO):
    """Lines that come when they are let."""

    def __init__(self) -> None:
        super().__init__(b"https://shop.example/1\n" * 2)
        self.is_read = threading.Event()
        self.goes_on = threading.Event()
        self.was_closed: list[bool] = []

    def readline(self, size: int | None = -1, /) -> bytes:
        self.is_read.set()
        self.goes_on.wait(60)
        self.was_closed.append(self.closed)
        return super().readline(size)


async def begin(database: Database, settings: Settings, file: SlowFile) -> asyncio.Task[None]:
    """An import that waits for its first line."""

    async def track() -> None:
        with file:
            await Tasks(database, settings).track_requests(
                read_requests(file), terms=RequestedTerms()
            )

    tracking = asyncio.create_task(track())
    assert await asyncio.to_thread(file.is_read.wait, 60)
    return tracking


async def test_a_file_stays_open_while_it_is_read(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.tasks.tracking.CLOSING", 60)
    file = SlowFile()
    tracking = await begin(database, settings, file)
    tracking.cancel()
    for _ in range(20):  # turns of the loop, in which it could have ended
        await asyncio.sleep(0)
    assert not file.closed
    file.goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await tracking
    assert set(file.was_closed) == {False}


async def test_no_reader_waits_for_lines_that_do_not_come(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forager.tasks.tracking.CLOSING", 0)
    file = SlowFile()
    tracking = await begin(database, settings, file)
    tracking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tracking
    assert file.was_closed == []
    file.goes_on.set()


async def test_an_interrupt_ends_an_import_from_standard_input(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(tmp_path))
    process = await asyncio.create_subprocess_exec(
        *(FORAGER, "products", "track", "--from", "-"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(120):
            process.stdin.writelines(
                b"https://shop.example/%d\n" % number for number in range(CHUNK)
            )
            # the first chunk is there, so the second is being read
            while await fetch_value(database, "SELECT count(*) FROM crawl_tasks") != CHUNK:
                assert process.returncode is None
            process.send_signal(signal.SIGINT)
            said = await process.stderr.read()
            assert (await process.wait(), b"Fatal" in said) == (130, False)
    finally:
        if process.returncode is None:
            process.kill()
        process.stdin.close()
        await process.wait()
