"""The guardian of a supervised process: a thread that reads its control socket and ends it in time.

It is a thread, because the event loop may be the very thing that hangs: a process whose lease is
not renewed must be gone before its work can be given to another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from forager.clock import local_time
from forager.logs import configure_logs
from forager.processes.control import (
    Assignment,
    Continue,
    Message,
    Renewed,
    Stop,
    StopCause,
    Tick,
    Unrenewed,
    decode,
    encode,
    receive_assignment,
)
from forager.processes.started import MARK_VARIABLE
from forager.processes.tree import kill_descendants, kill_marked
from forager.settings import Settings

NAP = 1.0
TICK_INTERVAL = 1.0
# how long a process continues after its supervisor died
ORPHAN_LIMIT = 15.0

Order = Stop | Continue


class Guardian:
    """Reads the control socket from the first message on; an event loop joins when there is one."""

    def __init__(self, control: socket.socket, *, renewed_at: float, lease_limit: float) -> None:
        self._control = control
        self._lease_limit = lease_limit
        self._deadline = renewed_at + lease_limit
        self._orphan_deadline = float("inf")
        self._buffer = b""
        self._lock = threading.Lock()
        self._early: list[Order] = []
        self._forward: Callable[[Order], None] | None = None

    def start(self) -> None:
        threading.Thread(target=self._watch, name="guardian", daemon=True).start()

    def attach(self, deliver: Callable[[Order], None]) -> None:
        """Deliver orders on the running loop from now on, first those that came before.

        SIGTERM counts as an order to shut down: a service manager sends it to every process of a
        service at once.
        """
        loop = asyncio.get_running_loop()

        def forward(message: Order) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process leaves anyway
                loop.call_soon_threadsafe(deliver, message)

        with self._lock:
            for message in self._early:
                forward(message)
            self._forward = forward
        loop.add_signal_handler(signal.SIGTERM, deliver, Stop(StopCause.SHUTDOWN))

    def renewed(self, at: float) -> None:
        """The lease was renewed; `at` is the local time before the database was asked."""
        self._deadline = at + self._lease_limit

    def note_progress(self) -> None:
        self._send(Tick(progress=True))

    async def keep_ticking(self, tick: Callable[[], Tick] = Tick) -> None:
        """Report that the event loop turns. Only from the loop itself, never from a thread."""
        while True:
            self._send(tick())
            await asyncio.sleep(TICK_INTERVAL)

    def _send(self, message: Message) -> None:
        # a full socket means that the supervisor does not read: nothing is worth waiting for
        with contextlib.suppress(OSError):
            self._control.send(encode(message), socket.MSG_DONTWAIT)

    def _watch(self) -> None:
        try:
            self._watch_deadlines()
        finally:  # without its guardian a process would outlive its lease
            end_process_group()

    def _watch_deadlines(self) -> None:
        # poll, not select: a process with many open files may give us a descriptor above 1,023
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        while True:
            remaining = min(self._deadline, self._orphan_deadline) - local_time()
            if remaining <= 0:
                # the machine slept or the database was unreachable: not the fault of the work
                self._send(Unrenewed())
                end_process_group()
            # short naps: the timer of poll stands still while the machine sleeps
            if poller.poll(1000 * min(remaining, NAP)) and not self._read():
                poller.unregister(self._control)

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
            self.renewed(message.at)
        elif isinstance(message, Stop | Continue):
            self._pass_on(message)

    def _orphaned(self) -> None:
        """Stop soon because the supervisor is dead, and cleanly if the loop still runs."""
        self._orphan_deadline = local_time() + ORPHAN_LIMIT
        self._pass_on(Stop(StopCause.ORPHANED))

    def _pass_on(self, message: Order) -> None:
        with self._lock:
            if self._forward is None:
                self._early.append(message)
            else:
                self._forward(message)


def join_supervisor() -> tuple[Assignment, Settings, Guardian]:
    """First step of a supervised process: from here on, it ends in time even if it hangs."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    assignment = receive_assignment(control)
    settings = Settings(**assignment.settings)
    configure_logs(settings.log_level, settings.log_format)
    renewed_at = local_time() if assignment.renewed_at is None else assignment.renewed_at
    guardian = Guardian(control, renewed_at=renewed_at, lease_limit=settings.lease_limit)
    guardian.start()
    return assignment, settings, guardian


def end_process_group() -> NoReturn:
    """Kill this process and its children. Uncommitted work is rolled back."""
    kill_descendants(os.getpid())
    kill_marked(os.environ.get(MARK_VARIABLE, ""), besides=os.getpid())
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
