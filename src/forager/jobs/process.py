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
from typing import Self, TextIO

import psutil

from forager.jobs.control import Assignment, Continue, Message, Renewed, Stop, Tick, decode, encode
from forager.jobs.lease import Lease


class RunnerProcess:
    """A process group of its own, with a control socket to it."""

    def __init__(self, lease: Lease, process: subprocess.Popen[bytes], control: socket.socket):
        self.lease = lease
        self.pid = process.pid
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self.kill_reason: str | None = None
        self.stop_sent: Stop | None = None
        self.started = self.last_tick = self.last_progress = time.monotonic()
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._buffer = b""

    @classmethod
    def start(cls, lease: Lease, assignment: Assignment) -> Self:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "forager.jobs.runner", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # standard output belongs to the data of the command that started us
                stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
                # its own group, so that Ctrl-C does not reach it and a kill reaches its children
                start_new_session=True,
            )
        ours.setblocking(False)
        runner = cls(lease, process, ours)
        runner.send(assignment)
        runner._loop.add_reader(ours.fileno(), runner._read)
        threading.Thread(target=runner._await_exit, name="runner exit", daemon=True).start()
        return runner

    def send(self, message: Message) -> None:
        # A runner that does not read is frozen or dead; both are noticed elsewhere.
        with contextlib.suppress(OSError):
            self._control.sendall(encode(message))

    def renewed(self, at: float) -> None:
        self.send(Renewed(at))

    def ask_to_stop(self, stop: Stop) -> None:
        if self.stop_sent != stop:
            self.stop_sent = stop
            self.send(stop)

    def carry_on(self) -> None:
        if self.stop_sent is not None:
            self.stop_sent = None
            self.send(Continue())

    def kill(self, reason: str | None = None) -> None:
        """End the whole process group at once; the reason is what the job's history will say."""
        if self.exited.is_set():
            return
        self.kill_reason = self.kill_reason or reason
        for child in self._descendants():
            with contextlib.suppress(psutil.Error):
                child.kill()
        self._kill_group()

    def memory_mb(self) -> float:
        """Resident memory of the runner and everything it started."""
        total = 0
        for process in self._descendants(include_self=True):
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total / 2**20

    def how_it_ended(self) -> str:
        """What the job's history says about this end."""
        if self.kill_reason:
            return self.kill_reason
        code = self.exit_code or 0
        if code < 0:
            return f"runner was killed by {signal.Signals(-code).name}"
        return f"runner exited with code {code} before the job was finished"

    def _read(self) -> None:
        try:
            data = self._control.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._control.fileno())
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._note(decode(line))

    def _note(self, message: Message) -> None:
        if isinstance(message, Tick):
            self.last_tick = time.monotonic()
            if message.progress:
                self.last_progress = self.last_tick

    def _await_exit(self) -> None:
        # WNOWAIT leaves the dead leader in the table, so that its group's number cannot be given
        # to anybody else before the group's survivors have been killed.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._kill_group()
        code = self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._note_exit, code)

    def _note_exit(self, code: int) -> None:
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self.exit_code = code
        self.exited.set()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _descendants(self, *, include_self: bool = False) -> list[psutil.Process]:
        try:
            leader = psutil.Process(self.pid)
            return ([leader] if include_self else []) + leader.children(recursive=True)
        except psutil.Error:
            return []


def _has_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):  # replaced or closed
        return False
