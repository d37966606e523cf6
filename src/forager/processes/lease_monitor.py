"""The lease monitor of a process: a thread that reads its control socket and ends it in time.

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
import time
from collections.abc import Callable
from typing import NoReturn

from forager.clock import local_time
from forager.logs import configure_logs
from forager.processes.control import (
    Assignment,
    BlameJob,
    CancelJob,
    Command,
    JobProgress,
    Message,
    RenewedLeases,
    RunJob,
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

POLL_INTERVAL = 1.0
TICK_INTERVAL = 1.0
LAG_SAMPLE = 0.1
# how long a process continues after its supervisor died
ORPHAN_LIMIT = 15.0
# a job is dropped this long before the limit of its lease, at which the whole process ends
DROP_GRACE = 5.0
# without a tick for this long, something blocks the event loop
BLOCKED_AFTER = 3.0

# the lease of the process as a whole
OWN = ""


class LeaseMonitor:
    """Reads the control socket from the first message on; an event loop joins when there is one.

    A job whose lease is about to expire is dropped. If it does not end, or if the lease of the
    process as a whole expires, the process ends. `find_blocking_job` is called from the thread of
    the lease monitor while the event loop stands still.
    """

    def __init__(self, control: socket.socket, *, lease_limit: float) -> None:
        self.find_blocking_job: Callable[[], str | None] = lambda: None
        self._control = control
        self._lease_limit = lease_limit
        self._drop_grace = min(DROP_GRACE, lease_limit / 4)
        self._deadlines: dict[str, float] = {}
        self._dropped: set[str] = set()
        self._orphan_deadline = float("inf")
        self._incoming = self._outgoing = b""
        self._lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._early: list[Command] = []
        self._forward: Callable[[Command], None] | None = None
        self._last_tick = float("inf")
        self._blamed: str | None = None

    def start(self) -> None:
        """Start the thread that watches the leases."""
        threading.Thread(target=self._watch, name="lease monitor", daemon=True).start()

    def attach(self, deliver: Callable[[Command], None]) -> None:
        """Deliver commands on the running loop from now on, first those that came before.

        SIGTERM counts as a command to shut down: a service manager sends it to every process of a
        service at once.
        """
        loop = asyncio.get_running_loop()

        def forward(message: Command) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process leaves anyway
                loop.call_soon_threadsafe(deliver, message)

        with self._lock:
            for message in self._early:
                forward(message)
            self._forward = forward
        loop.add_signal_handler(signal.SIGTERM, deliver, Stop(StopCause.SHUTDOWN))

    def renewed(self, at: float, lease: str = OWN) -> None:
        """A lease was renewed; `at` is the local time before the database was asked."""
        with self._lock:
            if lease not in self._dropped:
                grace = 0.0 if lease == OWN else self._drop_grace
                self._deadlines[lease] = at + self._lease_limit - grace

    def forget(self, lease: str) -> None:
        """The work under this lease has ended."""
        with self._lock:
            self._deadlines.pop(lease, None)
            self._dropped.discard(lease)

    def was_dropped(self, lease: str) -> bool:
        """Whether the lease was not renewed in time."""
        return lease in self._dropped

    async def keep_ticking(
        self,
        tick: Callable[[float], Tick] = lambda lag: Tick(lag=lag),
        *,
        sample: float | None = None,
    ) -> None:
        """Report that the event loop turns. Only from the loop itself, never from a thread.

        `sample`: how often its lag is measured, for ticks that need it.
        """
        lag = 0.0
        while True:
            self._last_tick = local_time()
            self._blamed = None
            self.send(tick(lag))
            lag = await _longest_delay(TICK_INTERVAL, sample or TICK_INTERVAL)

    def send(self, message: Message) -> None:
        """Send a message. While the supervisor does not read, ticks are left out."""
        with self._send_lock:
            if not (self._outgoing and isinstance(message, Tick | JobProgress)):
                self._outgoing += encode(message)
            with contextlib.suppress(OSError):
                sent = self._control.send(self._outgoing, socket.MSG_DONTWAIT)
                self._outgoing = self._outgoing[sent:]

    def _watch(self) -> None:
        try:
            self._watch_deadlines()
        finally:  # without its lease monitor a process would outlive its lease
            end_process_group()

    def _watch_deadlines(self) -> None:
        # poll, not select: a process with many open files may give us a descriptor above 1,023
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        while True:
            remaining = self._next_deadline() - local_time()
            if remaining <= 0:
                self._expire()
                continue
            self._find_blocking_job()
            # short naps: the timer of poll stands still while the machine sleeps
            if poller.poll(1000 * min(remaining, POLL_INTERVAL)) and not self._read():
                poller.unregister(self._control)

    def _next_deadline(self) -> float:
        with self._lock:
            return min(self._orphan_deadline, *self._deadlines.values(), float("inf"))

    def _expire(self) -> None:
        """Drop jobs whose lease has run out; end the process if it cannot continue without it.

        The machine slept or the database was unreachable: that is not the fault of the work.
        """
        now = local_time()
        with self._lock:
            expired = {lease for lease, deadline in self._deadlines.items() if deadline <= now}
            is_over = self._orphan_deadline <= now or expired & {OWN, *self._dropped}
            self._dropped |= expired
            self._deadlines.update(dict.fromkeys(expired, now + self._drop_grace))
        if is_over:
            self.send(Unrenewed())
            end_process_group()
        for lease in expired:
            self._pass_on(CancelJob(lease))

    def _find_blocking_job(self) -> None:
        if local_time() - self._last_tick < BLOCKED_AFTER:
            return
        job = self.find_blocking_job()
        if job is not None and job != self._blamed:
            self.send(BlameJob(job))
            self._blamed = job

    def _read(self) -> bool:
        try:
            data = self._control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._orphaned()
            return False
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        for line in lines:
            self._handle(decode(line))
        return True

    def _handle(self, message: Message) -> None:
        if isinstance(message, RenewedLeases):
            with self._lock:
                current = [job for job in message.jobs if job in self._deadlines]
            for job in current:
                self.renewed(message.at, job)
        elif isinstance(message, Command):
            if isinstance(message, RunJob):
                self.renewed(message.renewed_at, message.job)
            self._pass_on(message)

    def _orphaned(self) -> None:
        """Stop soon because the supervisor is dead, and cleanly if the loop still runs."""
        self._orphan_deadline = local_time() + ORPHAN_LIMIT
        self._pass_on(Stop(StopCause.ORPHANED))

    def _pass_on(self, message: Command) -> None:
        with self._lock:
            if self._forward is None:
                self._early.append(message)
            else:
                self._forward(message)


async def _longest_delay(seconds: float, sample: float) -> float:
    """Wait; the longest time for which the event loop kept a due callback waiting meanwhile."""
    longest, now = 0.0, time.monotonic()
    end = now + seconds
    while now < end:
        due = now + sample
        await asyncio.sleep(sample)
        now = time.monotonic()
        longest = max(longest, now - due)
    return longest


def join_supervisor() -> tuple[Assignment, Settings, LeaseMonitor]:
    """First step of a supervised process: from here on, it ends in time even if it hangs."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    assignment = receive_assignment(control)
    settings = Settings(**assignment.settings)
    configure_logs(settings.log_level, settings.log_format)
    lease_monitor = LeaseMonitor(control, lease_limit=settings.lease_limit)
    lease_monitor.start()
    return assignment, settings, lease_monitor


def end_process_group() -> NoReturn:
    """Kill this process and its children. Uncommitted work is rolled back."""
    kill_descendants(os.getpid())
    kill_marked(os.environ.get(MARK_VARIABLE, ""), besides=os.getpid())
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
