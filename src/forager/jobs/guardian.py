"""A runner's guardian: a thread that hears the supervisor and ends the process in time.

It is a thread, because the event loop may be the very thing that hangs: a runner that nobody
renews must be gone before its job can be given to somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from typing import NoReturn

from forager.clock import local_time
from forager.jobs.control import (
    Continue,
    Message,
    Renewed,
    Stop,
    StopCause,
    Unrenewed,
    decode,
    encode,
)
from forager.processes.tree import MARK_VARIABLE, kill_descendants, kill_marked

NAP = 1.0


class Guardian:
    """Reads the control socket from the first message on; an event loop joins when there is one."""

    def __init__(
        self, control: socket.socket, *, renewed_at: float, lease_limit: float, orphan_grace: float
    ) -> None:
        self._control = control
        self._deadline = renewed_at + lease_limit
        self._lease_limit = lease_limit
        self._orphan_grace = orphan_grace
        self._buffer = b""
        self._lock = threading.Lock()
        self._early: list[Stop | Continue] = []
        self._forward: Callable[[Stop | Continue], None] | None = None

    def start(self) -> None:
        threading.Thread(target=self._watch, name="guardian", daemon=True).start()

    def attach(
        self, loop: asyncio.AbstractEventLoop, deliver: Callable[[Stop | Continue], None]
    ) -> None:
        """From now on call `deliver` on the loop; first with what came before."""

        def forward(message: Stop | Continue) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the runner leaves anyway
                loop.call_soon_threadsafe(deliver, message)

        with self._lock:
            for message in self._early:
                forward(message)
            self._forward = forward

    def _watch(self) -> None:
        connected = True
        while True:
            remaining = self._deadline - local_time()
            if remaining <= 0:
                self._say_unrenewed()
                end_process_group()
            readers = [self._control] if connected else []
            # short naps: the select timer stands still while the machine sleeps
            ready, _, _ = select.select(readers, [], [], min(remaining, NAP))
            if ready:
                connected = self._read()

    def _read(self) -> bool:
        try:
            data = self._control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._orphaned()
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._handle(decode(line))
        return True

    def _handle(self, message: Message) -> None:
        if isinstance(message, Renewed):
            self._deadline = message.at + self._lease_limit
        elif isinstance(message, Stop | Continue):
            self._pass_on(message)

    def _orphaned(self) -> None:
        """Nobody renews the lease any more: leave soon, and cleanly if the loop still turns."""
        self._deadline = min(self._deadline, local_time() + self._orphan_grace)
        self._pass_on(Stop(StopCause.ORPHANED))

    def _pass_on(self, message: Stop | Continue) -> None:
        with self._lock:
            if self._forward is None:
                self._early.append(message)
            else:
                self._forward(message)

    def _say_unrenewed(self) -> None:
        # a machine that slept, or a database that was away: the supervisor must not count it
        # against the job
        with contextlib.suppress(OSError):
            self._control.send(encode(Unrenewed()), socket.MSG_DONTWAIT)


def end_process_group() -> NoReturn:
    """End this runner and its children at once. What was not committed never happened."""
    kill_descendants(os.getpid())
    kill_marked(os.environ.get(MARK_VARIABLE, ""), besides=os.getpid())
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
