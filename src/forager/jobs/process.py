"""One runner process as its supervisor sees it: started, listened to, measured, ended."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Self

from forager.jobs.control import (
    Assignment,
    Continue,
    Message,
    Renewed,
    Stop,
    Tick,
    Unrenewed,
    decode,
    encode,
)
from forager.jobs.lease import Lease
from forager.processes.child import ChildProcess
from forager.processes.tree import resident_mb


class RunnerProcess:
    """A child process with a control socket to it."""

    def __init__(self, lease: Lease, control: socket.socket, on_exit: Callable[[], None]) -> None:
        self.lease = lease
        self.exited = asyncio.Event()
        self.kill_reason: str | None = None
        # it ended itself because nobody renewed its lease, which is not the job's fault
        self.unrenewed = False
        self.stop_sent: Stop | None = None
        self.stop_sent_at: float | None = None
        self.started = self.last_tick = self.last_progress = time.monotonic()
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._incoming = self._outgoing = b""
        self._child: ChildProcess

    @classmethod
    def start(cls, lease: Lease, assignment: Assignment, on_exit: Callable[[], None]) -> Self:
        ours, theirs = socket.socketpair()
        runner = cls(lease, ours, on_exit)
        try:
            runner._child = _spawn(lease, theirs, runner._note_exit)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        runner.send(assignment)
        runner._loop.add_reader(ours.fileno(), runner._read)
        return runner

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, message: Message) -> None:
        self._outgoing += encode(message)
        self._flush()

    def renewed(self, at: float) -> None:
        self.send(Renewed(at))

    def shows_life(self, within: float) -> bool:
        return not self.exited.is_set() and time.monotonic() - self.last_tick <= within

    def ask_to_stop(self, stop: Stop) -> None:
        if self.stop_sent != stop:
            self.stop_sent = stop
            self.stop_sent_at = time.monotonic()
            self.send(stop)

    def carry_on(self) -> None:
        if self.stop_sent is not None:
            self.stop_sent = self.stop_sent_at = None
            self.send(Continue())

    def kill(self, reason: str | None = None) -> None:
        """End it and all it started at once; the reason is what the job's history will say."""
        if self.exited.is_set():
            return
        self.kill_reason = self.kill_reason or reason
        self._child.kill()

    def memory_mb(self) -> float:
        """Resident memory of the runner and everything it started."""
        return resident_mb(self.pid)

    def how_it_ended(self) -> str:
        """What the job's history says about this end."""
        if self.kill_reason:
            return self.kill_reason
        ended = f"runner {self._child.how_it_ended()}"
        return ended if (self._child.exit_code or 0) < 0 else f"{ended} before the job was finished"

    def _flush(self) -> None:
        """Send what the socket takes now, and the rest when it takes more."""
        try:
            sent = self._control.send(self._outgoing)
        except BlockingIOError:
            sent = 0
        except OSError:  # it is gone, which is noticed elsewhere
            sent = len(self._outgoing)
        self._outgoing = self._outgoing[sent:]
        if self._outgoing:
            self._loop.add_writer(self._control.fileno(), self._flush)
        elif self._control.fileno() >= 0:
            self._loop.remove_writer(self._control.fileno())

    def _read(self) -> bool:
        """Take in what has arrived; whether there may be more."""
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._control.fileno())
            return False
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        for line in lines:
            self._note(decode(line))
        return True

    def _note(self, message: Message) -> None:
        if isinstance(message, Tick):
            self.last_tick = time.monotonic()
            if message.progress:
                self.last_progress = self.last_tick
        elif isinstance(message, Unrenewed):
            self.unrenewed = True

    def _note_exit(self) -> None:
        while self._read():  # its last words
            pass
        self._loop.remove_reader(self._control.fileno())
        self._loop.remove_writer(self._control.fileno())
        self._control.close()
        self.exited.set()
        self._on_exit()


def run_mark(lease: Lease) -> str:
    """The mark of a runner's processes: of which worker, of which job, under which lease."""
    return f"{lease.worker_id} {lease.job_id} {lease.number}"


def _spawn(lease: Lease, control: socket.socket, on_exit: Callable[[], None]) -> ChildProcess:
    return ChildProcess(
        ["forager.jobs", str(control.fileno())],
        mark=run_mark(lease),
        pass_fds=[control.fileno()],
        on_exit=on_exit,
    )
