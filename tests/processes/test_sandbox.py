"""Sandboxed processes that misbehave or are attacked: the next request is handled anyway."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from forager.errors import ErrorKind, GiveUp, Retry
from forager.processes import child, sandbox
from forager.processes import usage as effort
from forager.processes.sandbox import Sandbox, SandboxLimits
from forager.processes.started import start_python
from forager.processes.tree import kill_marked
from forager.processes.usage import started_at
from forager.settings import Settings
from support.waiting import eventually

MODULE = "misbehaving_server"
GENEROUS = SandboxLimits(seconds=60, memory_mb=300)
STRICT = SandboxLimits(seconds=0.5, memory_mb=300)
LIMIT = 120.0


class Client:
    """A sandbox with a folder in which its processes record their requests."""

    def __init__(self, process: Sandbox, folder: Path) -> None:
        self.process = process
        self._folder = folder
        self._numbers = count()

    async def request(self, what: str) -> str:
        return (await self.request_as(next(self._numbers), what))[0]

    async def request_as(self, number: int, what: str) -> tuple[str, int]:
        async with asyncio.timeout(LIMIT):
            response, _ = await self.process.request(number, {"id": number}, what.encode())
        return response["said"], response["pid"]

    def start(self, what: str) -> tuple[int, asyncio.Task[tuple[str, int]]]:
        number = next(self._numbers)
        return number, asyncio.create_task(self.request_as(number, what))

    def pids(self, number: int) -> list[int]:
        path = self._folder / f"attempts-{number}"
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    async def at_work(self, number: int) -> int:
        """The first process that works on a request."""
        return (await eventually(lambda: self.pids(number)))[0]


async def ended(pid: int) -> None:
    await eventually(lambda: started_at(pid) is None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    return tmp_path


@pytest.fixture
async def generous(folder: Path) -> AsyncIterator[Client]:
    process = await Sandbox.start(MODULE, str(folder).encode(), GENEROUS)
    yield Client(process, folder)
    await process.stop()


@pytest.fixture
async def strict(folder: Path) -> AsyncIterator[Client]:
    process = await Sandbox.start(MODULE, str(folder).encode(), STRICT)
    yield Client(process, folder)
    await process.stop()


# --- harmful requests ------------------------------------------------------------------------


async def test_a_child_that_is_left_behind_stops_nothing(generous: Client, folder: Path) -> None:
    with pytest.raises(GiveUp, match="ended with code -11"):
        await generous.request("leave a child")
    assert await generous.request("echo") == "attempt 1"
    left = [int(path.name.removeprefix("child-")) for path in folder.glob("child-*")]
    assert len(left) == 2  # of both attempts
    for pid in left:
        await ended(pid)


@pytest.mark.parametrize(
    ("what", "cause"),
    [("crash", "ended with code -11"), ("share memory", "needs more than 300 MB")],
)
async def test_a_request_fails_after_a_fault_in_a_second_process(
    generous: Client, what: str, cause: str
) -> None:
    number, request = generous.start(what)
    with pytest.raises(GiveUp, match=cause) as refused:
        await request
    assert refused.value.kind is ErrorKind.PARSE
    assert len(set(generous.pids(number))) == 2
    assert await generous.request("echo") == "attempt 1"


async def test_why_a_process_was_killed_is_known_when_its_exit_is_noticed_late(
    generous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_a_busy_machine(mark: str, *, besides: int) -> None:
        time.sleep(1.2)  # two more looks at the limits, at a process without memory
        kill_marked(mark, besides=besides)

    monkeypatch.setattr(child, "kill_marked", on_a_busy_machine)
    number, request = generous.start("share memory")
    with pytest.raises(GiveUp, match="needs more than 300 MB"):
        await request
    assert len(set(generous.pids(number))) == 2


@pytest.mark.parametrize("what", ["spin", "sleep"])
async def test_time_counts_when_it_is_used_or_slept_through(strict: Client, what: str) -> None:
    number, request = strict.start(what)
    with pytest.raises(GiveUp, match=r"it takes longer than 0\.5 s$"):
        await request
    assert len(set(strict.pids(number))) == 2
    assert await strict.request("echo") == "attempt 1"


@pytest.mark.parametrize("what", ["crash at first", "send nonsense"])
async def test_a_request_that_fails_once_is_repeated(generous: Client, what: str) -> None:
    assert await generous.request(what) == "attempt 2"


async def test_prints_are_kept_out_of_responses(generous: Client) -> None:
    assert await generous.request("print") == "printed"
    assert await generous.request("echo") == "attempt 1"


async def test_secrets_of_the_environment_are_hidden(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("FORAGER_SECRET_KEY", "hidden")
    process = await Sandbox.start(MODULE, str(folder).encode(), GENEROUS)
    try:
        names = (await Client(process, folder).request("environment")).split()
    finally:
        await process.stop()
    assert "PATH" in names
    assert not [name for name in names if "SECRET" in name]


# --- attacks from outside ------------------------------------------------------------------------


async def test_a_process_killed_from_outside_costs_no_page(generous: Client) -> None:
    number, request = generous.start("hang at first")
    _, behind = generous.start("echo")
    os.kill(await generous.at_work(number), signal.SIGKILL)
    assert (await request)[0] == "attempt 2"
    assert (await behind)[0] == "attempt 1"


async def test_a_process_stopped_from_outside_is_replaced_and_costs_no_page(
    strict: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # longer than the limit of a request
    monkeypatch.setattr(effort, "STOPPED_LIMIT", 4 * STRICT.seconds)
    number, request = strict.start("hang at first")
    os.kill(await strict.at_work(number), signal.SIGSTOP)
    assert (await request)[0] == "attempt 2"


async def test_starts_are_retried_on_a_machine_without_processes_to_spare(
    generous: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([OSError("no processes to spare")] * 2)

    def scarce(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        for failure in failures:
            raise failure
        return start_python(*arguments, **options)

    monkeypatch.setattr(child, "start_python", scarce)
    monkeypatch.setattr(sandbox, "RESTART_DELAY", 0.01)
    assert await generous.request("crash at first") == "attempt 2"


CLIENT = """
import asyncio, sys
from forager.processes.sandbox import Sandbox, SandboxLimits

async def main():
    process = await Sandbox.start("misbehaving_server", sys.argv[1].encode(), SandboxLimits())
    await process.request(0, {"id": 0}, b"spin")

asyncio.run(main())
"""


async def test_a_sandboxed_process_ends_with_its_parent(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(folder)]) as parent:
        attempts = folder / "attempts-0"
        await eventually(lambda: attempts.exists() and attempts.read_text())
        parent.kill()
    await ended(int(attempts.read_text()))


async def test_a_process_that_cannot_start_is_a_temporary_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "FAILED_STARTS", 3)
    monkeypatch.setattr(sandbox, "RESTART_DELAY", 0.01)
    process = await Sandbox.start("no_such_module_anywhere", b"", GENEROUS)
    try:
        async with asyncio.timeout(LIMIT):
            with pytest.raises(Retry, match="cannot be read now"):
                await process.request(1, {"id": 1}, b"")
    finally:
        await process.stop()


@pytest.mark.parametrize(("cores", "processes"), [(1, 1), (2, 2), (3, 2), (4, 2), (16, 8)])
def test_two_processes_read_pages_unless_there_is_one_core(
    cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert SandboxLimits.of_pages(Settings(extraction_processes=None)).processes == processes
    assert SandboxLimits.of_pages(Settings(extraction_processes=3)).processes == 3
