"""The watchdog of an event loop: a thread that logs and reports that the loop is blocked."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from forager.logs import get_logger
from forager.services.status import FAILING_AFTER, ServiceState, ServiceStatus

log = get_logger("services")

NAME = "event loop"
INTERVAL = 2.0
# a loop that has not turned for this long is blocked
BLOCKED_AFTER = 5.0
# a block counts as a failure for this long after its end, so that others can notice it
RECENT = 60.0
STACK_FRAMES = 15


class LoopWatchdog:
    """Watches the running loop until it is stopped; `status` is that of a service."""

    def __init__(self, *, blocked_after: float, interval: float) -> None:
        self._blocked_after = blocked_after
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._turned = time.monotonic()
        self._stopped = threading.Event()
        self._ended: float | None = None
        self._status = ServiceStatus(name=NAME, every=interval, state=ServiceState.RUNNING)
        self._turn()
        threading.Thread(target=self._watch, name="loop watchdog", daemon=True).start()

    @property
    def status(self) -> ServiceStatus:
        """Its state, as that of a background service."""
        ended = self._ended
        if ended is None or time.monotonic() - ended > RECENT:
            return self._status
        return replace(self._status, failures=FAILING_AFTER, is_fault=True)

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()
        self._handle.cancel()

    def _turn(self) -> None:
        self._turned = time.monotonic()
        self._handle = self._loop.call_later(self._interval, self._turn)

    def _watch(self) -> None:
        looked = time.monotonic()
        while not self._stopped.wait(self._interval):
            now = time.monotonic()
            # a process that was stopped, or got no processor, has not seen the loop turn either
            asleep = now - looked > self._interval + self._blocked_after
            looked = now
            silent = now - self._turned
            if silent <= self._blocked_after:
                self._note_end()
            elif not asleep and not self._status.is_stuck:
                self._note_block(silent)

    def _note_block(self, seconds: float) -> None:
        frames = traceback.extract_stack(sys._current_frames().get(self._thread))[-STACK_FRAMES:]
        place = f" in {frames[-1].name}" if frames else ""
        stack = "".join(traceback.format_list(frames))
        log.error("event loop is blocked", seconds=round(seconds, 1), stack=stack)
        self._status = replace(
            self._status,
            state=ServiceState.STUCK,
            last_error=f"the event loop was blocked{place}",
            last_error_at=datetime.now(UTC),
        )

    def _note_end(self) -> None:
        if self._status.is_stuck:
            self._ended = time.monotonic()
            self._status = replace(self._status, state=ServiceState.RUNNING)
            log.warning("event loop recovered")


_WATCHDOGS: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopWatchdog] = WeakKeyDictionary()


def watch_this_loop() -> LoopWatchdog | None:
    """Start the watchdog of the running loop; None if it has one."""
    loop = asyncio.get_running_loop()
    if loop in _WATCHDOGS:
        return None
    _WATCHDOGS[loop] = LoopWatchdog(blocked_after=BLOCKED_AFTER, interval=INTERVAL)
    return _WATCHDOGS[loop]


def stop_watching(watchdog: LoopWatchdog) -> None:
    """End the watch of the running event loop."""
    watchdog.stop()
    _WATCHDOGS.pop(asyncio.get_running_loop(), None)
