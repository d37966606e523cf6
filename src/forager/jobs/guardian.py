"""A runner's guardian: a thread that hears the supervisor and ends the process in time.

It is a thread, because the event loop may be the very thing that hangs: a runner that nobody
renews must be gone before its job can be given to somebody else.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import threading
from collections.abc import Callable

from forager.jobs.clock import awake_and_asleep
from forager.jobs.control import Continue, Message, Renewed, Stop, StopCause, decode


class Guardian:
    """Reads the control socket; `deliver` is called on the event loop with stops and continues."""

    def __init__(
        self,
        control: socket.socket,
        *,
        renewed_at: float,
        lease_limit: float,
        orphan_grace: float,
        deliver: Callable[[Stop | Continue], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._control = control
        self._deadline = renewed_at + lease_limit
        self._lease_limit = lease_limit
        self._orphan_grace = orphan_grace
        self._deliver = deliver
        self._loop = loop
        self._buffer = b""

    def start(self) -> None:
        threading.Thread(target=self._watch, name="guardian", daemon=True).start()

    def _watch(self) -> None:
        connected = True
        while True:
            remaining = self._deadline - awake_and_asleep()
            if remaining <= 0:
                end_process_group()
            readers = [self._control] if connected else []
            # short naps: the select timer stands still while the machine sleeps
            ready, _, _ = select.select(readers, [], [], min(remaining, 1.0))
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
            self._send_to_loop(message)

    def _orphaned(self) -> None:
        """Nobody renews the lease any more: leave soon, and cleanly if the loop still turns."""
        self._deadline = min(self._deadline, awake_and_asleep() + self._orphan_grace)
        self._send_to_loop(Stop(StopCause.ORPHANED))

    def _send_to_loop(self, message: Stop | Continue) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, message)
        except RuntimeError:  # the loop is closed: the runner is leaving anyway
            return


def end_process_group() -> None:
    """End this runner and its children at once. What was not committed never happened."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
