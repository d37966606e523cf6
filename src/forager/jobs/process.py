"""One runner process as its supervisor sees it: started, listened to, measured, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

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
from forager.jobs.family import RUN_MARK, end_descendants, memory_mb, run_mark
from forager.jobs.lease import Lease


class RunnerProcess:
    """A process group of its own, with a control socket to it."""

    def __init__(
        self,
        lease: Lease,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        on_exit: Callable[[], None],
    ) -> None:
        self.lease = lease
        self.pid = process.pid
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self.kill_reason: str | None = None
        # it ended itself because nobody renewed its lease, which is not the job's fault
        self.unrenewed = False
        self.stop_sent: Stop | None = None
        self.stop_sent_at: float | None = None
        self.started = self.last_tick = self.last_progress = time.monotonic()
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._incoming = self._outgoing = b""

    @classmethod
    def start(cls, lease: Lease, assignment: Assignment, on_exit: Callable[[], None]) -> Self:
        ours, theirs = socket.socketpair()
        try:
            process = _spawn(lease, theirs)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        runner = cls(lease, process, ours, on_exit)
        runner.send(assignment)
        runner._loop.add_reader(ours.fileno(), runner._read)
        threading.Thread(target=runner._await_exit, name="runner exit", daemon=True).start()
        return runner

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
        end_descendants(self.pid, run_mark(self.lease))
        self._kill_group()

    def memory_mb(self) -> float:
        """Resident memory of the runner and everything it started."""
        return memory_mb(self.pid)

    def how_it_ended(self) -> str:
        """What the job's history says about this end."""
        if self.kill_reason:
            return self.kill_reason
        code = self.exit_code or 0
        if code < 0:
            return f"runner was killed by {_signal_name(-code)}"
        return f"runner exited with code {code} before the job was finished"

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

    def _await_exit(self) -> None:
        # WNOWAIT leaves the dead leader in the table, so that its group's number cannot be given
        # to anybody else before the group's survivors have been killed.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._kill_group()
        end_descendants(self.pid, run_mark(self.lease))
        code = self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._note_exit, code)

    def _note_exit(self, code: int) -> None:
        while self._read():  # its last words
            pass
        self._loop.remove_reader(self._control.fileno())
        self._loop.remove_writer(self._control.fileno())
        self._control.close()
        self.exit_code = code
        self.exited.set()
        self._on_exit()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _spawn(lease: Lease, control: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "forager.jobs", str(control.fileno())],
        pass_fds=[control.fileno()],
        stdin=subprocess.DEVNULL,
        # standard output belongs to the data of the command that started us
        stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
        env=os.environ | {RUN_MARK: run_mark(lease)},
        # its own group, so that Ctrl-C does not reach it and a kill reaches its children
        start_new_session=True,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


def _has_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):  # replaced or closed
        return False
