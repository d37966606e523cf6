"""`forager up`: the API and the worker are two processes, and neither can stop the other."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import psutil
import pytest

from forager.listening import listening_addresses
from forager.settings import Settings
from support.waiting import LIMIT, eventually, gone

FORAGER = Path(sys.executable).parent / "forager"
API = "forager.cli.system.api_process"


@contextmanager
def up() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([FORAGER, "--log-level", "critical", "up", "--port", "0"])
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def api_process(process: subprocess.Popen[bytes]) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        with suppress(psutil.NoSuchProcess):  # a zombie, too
            if API in child.cmdline():
                return child
    return None


async def address_of(home: Path) -> str:
    found: list[str] = await eventually(lambda: asyncio.to_thread(listening_addresses, home))
    return found[0]


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, database_url: str, settings: Settings) -> Path:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(settings.home))
    monkeypatch.setenv("FORAGER_HEARTBEAT_INTERVAL", "1")
    monkeypatch.setenv("FORAGER_POLL_INTERVAL", "0.1")
    return settings.home


async def test_a_frozen_worker_and_a_dead_api_do_not_stop_each_other(home: Path) -> None:
    """Afterwards a signal ends all processes."""
    with up() as process:
        await freeze_worker(process, await address_of(home))
        await kill_api(process, home)
        await eventually(lambda: len(psutil.Process(process.pid).children()) > 1)
        children = [child.pid for child in psutil.Process(process.pid).children()]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, LIMIT) == 0
        await gone(*children)


async def freeze_worker(process: subprocess.Popen[bytes], address: str) -> None:
    """The API reports a frozen worker, and continues."""

    async def is_ready() -> bool:
        return (await get(f"{address}/readyz"))[0] == 200

    await eventually(is_ready)
    process.send_signal(signal.SIGSTOP)

    async def names_the_worker() -> bool:
        status, text = await get(f"{address}/readyz")
        return status == 503 and "up process" in json.loads(text)["failing_services"]

    await eventually(names_the_worker)
    assert (await get(f"{address}/healthz"))[0] == 200
    process.send_signal(signal.SIGCONT)
    await eventually(is_ready)


async def kill_api(process: subprocess.Popen[bytes], home: Path) -> None:
    """A dead API is started again, and this is visible."""
    first = api_process(process)
    assert first is not None
    first.kill()
    await gone(first.pid)
    second = await eventually(lambda: api_process(process))
    assert second is not None
    assert second.pid != first.pid

    async def is_shown() -> bool:
        with suppress(aiohttp.ClientError):  # another process may use the first one's port
            _, page = await get(f"{await address_of(home)}/workers")
            return "API process was killed by SIGKILL" in page
        return False

    await eventually(is_shown)


async def test_a_frozen_api_does_not_keep_the_worker_from_ending(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORAGER_SHUTDOWN_GRACE", "1")
    with up() as process:
        await address_of(home)
        api = api_process(process)
        assert api is not None
        api.suspend()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, LIMIT) == 0
        await gone(api.pid)
