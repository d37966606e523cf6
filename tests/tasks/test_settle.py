"""A worker that waits for storage is not stuck, however long that takes."""

from __future__ import annotations

import asyncio

import pytest

from forager.db import outages
from forager.db.outages import is_waiting_for_storage
from forager.errors import DiskFull
from forager.tasks.stages.settle import retry_until_stored


async def test_a_write_that_waits_for_space_counts_as_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outages, "FULL_INTERVAL", 0.001)
    has_space = asyncio.Event()

    async def write() -> str:
        if not has_space.is_set():
            raise DiskFull("no space left")
        return "written"

    writing = asyncio.create_task(retry_until_stored(write))
    async with asyncio.timeout(60):
        while not is_waiting_for_storage():
            await asyncio.sleep(0)
        has_space.set()
        assert await writing == "written"
    assert not is_waiting_for_storage()
