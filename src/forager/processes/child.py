"""A child process in its own session; its descendants are killed when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Self

from forager.errors import error_text
from forager.processes.started import start_python
from forager.processes.tree import kill_descendants, kill_marked


class ChildProcess:
    """A running Python module. `exited` is set when it and everything it started are gone.

    The exit is noticed by waiting for the process, never by the end of a stream: whatever it
    started may hold the other end of that stream open.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        mark: str,
        on_exit: Callable[[], None] = lambda: None,
    ) -> None:
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self._mark = mark
        self.on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._reaped = False
        self._process = process
        self.pid = self._process.pid
        try:
            name = f"exit of {self.pid}"
            threading.Thread(target=self._await_exit, name=name, daemon=True).start()
        except RuntimeError as error:  # no thread can be started
            self._kill_group()
            self._process.wait()
            raise OSError(errno.EAGAIN, error_text(error)) from error

    @classmethod
    def start(
        cls,
        arguments: Sequence[str | bytes],
        *,
        mark: str,
        environment: Mapping[str, str] | None = None,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        stdout: IO[bytes] | int | None = None,
    ) -> Self:
        """Start a Python process that is killed with this one."""
        process = start_python(
            arguments, mark=mark, environment=environment, stdin=stdin, stdout=stdout
        )
        return cls(process, mark=mark)

    def kill(self) -> None:
        """Kill the process and everything it started."""
        with self._lock:
            if not self._reaped:
                kill_descendants(self.pid)
                self._kill_group()

    def how_it_ended(self) -> str:
        """How it ended, as part of a sentence."""
        code = self.exit_code or 0
        return f"was killed by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"

    def _await_exit(self) -> None:
        # WNOWAIT leaves the dead leader in the table, so that the number of its group cannot be
        # reused before the survivors of the group have been killed
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._kill_group()
        kill_marked(self._mark, besides=self.pid)
        with self._lock:
            code = self._process.wait()
            self._reaped = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._note_exit, code)

    def _note_exit(self, code: int) -> None:
        self.exit_code = code
        self.exited.set()
        self.on_exit()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
