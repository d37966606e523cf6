"""A blocked event loop is noticed, logged and reported, and does not keep a process from ending."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time

import psutil
import pytest

from forager.cli.running import run_until_stopped
from forager.db.database import Database
from forager.logs import configure_logs
from forager.services import loop_watch, supervisor
from forager.services.loop_watch import LoopWatchdog
from forager.services.service import Service
from forager.settings import Settings
from support.api_server import api_server
from support.waiting import LIMIT, eventually
from web.visitor import Visitor

SERVICE = """
import asyncio, itertools, psutil, time
from forager.cli.running import run_until_stopped
from forager.processes import signals

signals.LEAST_GRACE = 0.0

async def main():
    asked = asyncio.Event()

    async def work():
        print("working", flush=True)
        {work}

    def stop():
        asked.set()
        {stop}

    await run_until_stopped(work(), stop, grace={grace})
    {after}

asyncio.run(main())
"""
# a blocked process uses its core until it is killed
SHORT_GRACE = 0.2
SLEEP = "time.sleep(3600)"
LOOP_OF_PYTHON = "[0 for _ in iter(int, 1)]"
C_CALL = "sum(itertools.repeat(0))"  # which does not release the interpreter


def block_the_loop(watchdog: LoopWatchdog) -> None:
    """Keep the loop's thread until the watchdog has noticed."""
    deadline = time.monotonic() + LIMIT
    while not watchdog.status.is_stuck and time.monotonic() < deadline:
        time.sleep(0.01)


async def test_a_blocked_loop_is_logged_with_the_place(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "json")
    watchdog = LoopWatchdog(blocked_after=0.2, interval=0.05)
    block_the_loop(watchdog)
    assert watchdog.status.is_stuck
    await eventually(lambda: not watchdog.status.is_stuck)
    watchdog.stop()
    [blocked] = [line for line in capfd.readouterr().err.splitlines() if "is blocked" in line]
    assert "block_the_loop" in json.loads(blocked)["stack"]
    # others can still notice it for a while
    assert watchdog.status.is_failing
    assert "blocked in " in (watchdog.status.last_error or "")


async def test_a_loop_that_turns_is_no_failure() -> None:
    watchdog = LoopWatchdog(blocked_after=5.0, interval=0.01)
    await asyncio.sleep(0.1)
    assert not watchdog.status.is_failing
    watchdog.stop()


async def test_readyz_reports_a_loop_that_was_blocked(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_watch, "BLOCKED_AFTER", 0.5)
    monkeypatch.setattr(loop_watch, "INTERVAL", 0.05)
    async with api_server(settings, database) as address, Visitor(address) as visitor:
        assert (await visitor.get("/readyz")).status == 200
        [watchdog] = loop_watch._WATCHDOGS.values()
        block_the_loop(watchdog)
        await eventually(lambda: not watchdog.status.is_stuck)
        ready = await visitor.get("/readyz")
        assert ready.status == 503
        assert '"failing_services":["event loop"]' in ready.text
        monkeypatch.setattr(loop_watch, "RECENT", 0.0)
        assert (await visitor.get("/readyz")).status == 200


async def test_a_process_has_one_watchdog() -> None:
    async def nothing() -> None: ...

    service = Service(name="any", every=60.0, step=nothing)
    async with supervisor.running([service]) as first, supervisor.running([service]) as second:
        await eventually(lambda: [each.name for each in first.statuses] == ["any", "event loop"])
        assert [each.name for each in second.statuses] == ["any"]


def end_of_service(
    *,
    work: str = "await asked.wait()",
    stop: str = "pass",
    after: str = "pass",
    number: int,
    grace: float = SHORT_GRACE,
) -> tuple[int, str]:
    """Start a service, send it a stop signal, and wait for its end."""
    script = SERVICE.format(work=work, stop=stop, after=after, grace=grace)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "working\n"
            process.send_signal(number)
            _, errors = process.communicate(timeout=LIMIT)
            return process.returncode, errors
        finally:
            process.kill()


@pytest.mark.parametrize("block", [SLEEP, LOOP_OF_PYTHON, C_CALL])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_process_whose_loop_is_blocked(block: str, number: signal.Signals) -> None:
    code, errors = end_of_service(work=block, number=number)
    assert code == -signal.SIGKILL
    assert f"did not stop within {SHORT_GRACE} s" in errors


@pytest.mark.parametrize("block", [SLEEP, C_CALL])
@pytest.mark.parametrize("place", ["stop", "after"])
def test_a_process_that_blocks_after_it_took_the_signal_ends(block: str, place: str) -> None:
    stop, after = (block, "pass") if place == "stop" else ("pass", block)
    code, errors = end_of_service(stop=stop, after=after, number=signal.SIGTERM)
    assert code == -signal.SIGKILL
    assert f"did not stop within {SHORT_GRACE} s" in errors


def test_a_signal_reaches_a_loop_that_turns() -> None:
    assert end_of_service(number=signal.SIGTERM, grace=LIMIT) == (0, "")


def test_a_signal_to_the_whole_group_spares_the_process_that_enforces_the_limit() -> None:
    """A terminal sends Ctrl-C, and a service manager SIGTERM, to every process of a service."""
    to_children = "[child.send_signal(n) for child in psutil.Process().children() for n in (2, 15)]"
    code, errors = end_of_service(work=f"{to_children}; {C_CALL}", number=signal.SIGTERM)
    assert code == -signal.SIGKILL
    assert f"did not stop within {SHORT_GRACE} s" in errors


async def test_no_process_is_left_when_no_signal_came() -> None:
    before = psutil.Process().children()

    async def work() -> None:
        assert len(psutil.Process().children()) == len(before) + 1

    await run_until_stopped(work(), lambda: None, grace=2)
    assert psutil.Process().children() == before
