"""Stop signals: delivered to the event loop, and limited in time whatever the process does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import IO, Self, cast

from forager.logs import get_logger
from forager.processes import stop_limit

log = get_logger("processes")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# a busy machine may need this long to stop, whatever the grace period
LEAST_GRACE = 2.0
# seconds of the grace period, at most a quarter of it, in which children are killed, their work
# is given back and connections are closed
RESERVE = 5.0


def time_to_finish(grace: float) -> float:
    """The part of the grace period in which children can finish; after it they are killed."""
    return max(0.0, grace - max(0.5, min(RESERVE, grace / 4)))


class StopSignals:
    """Calls `on_signal` on the running loop for each stop signal while the block runs.

    Python writes the number of a signal to a pipe as soon as it arrives, and a thread reads it. A
    child process kills this one `grace` seconds after the first signal, even if that arrives while
    a C call holds the interpreter, and even if the process hangs after the block. Other children
    notice the end of this process and end themselves.
    """

    def __init__(self, on_signal: Callable[[signal.Signals], None], *, grace: float) -> None:
        self._on_signal = on_signal
        self._grace = max(grace, LEAST_GRACE)
        self._loop = asyncio.get_running_loop()
        self._handlers: dict[signal.Signals, object] = {}
        self._limit: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._limit = self._start_limit()
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._handlers[number] = signal.signal(number, _leave_to_thread)
        self._old_writer = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="stop signals", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._old_writer)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._writer)  # which ends the thread
        if self._limit is not None and not self._stopping:
            self._limit.kill()
            self._limit.communicate()

    def _start_limit(self) -> subprocess.Popen[bytes] | None:
        """Start the process that kills this one; it gets none of the signals sent to a group."""
        given = (os.getpid(), self._reader, self._grace)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", stop_limit.__file__, *map(str, given)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=(self._reader,),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:  # too many processes or files, or no memory
            log.warning("a blocked process would not be killed", reason=error.strerror)
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _watch(self) -> None:
        arrival = select.poll()
        arrival.register(self._reader, select.POLLIN)
        # A blocked read would take the signal out of the pipe before it has the interpreter, and
        # the child that waits for it there would miss it.
        while arrival.poll() and (numbers := os.read(self._reader, 1024)):
            for number in self._handlers.keys() & set(numbers):
                self._start_countdown()
                with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
                    self._loop.call_soon_threadsafe(self._on_signal, signal.Signals(number))
        os.close(self._reader)

    def _start_countdown(self) -> None:
        if not self._stopping and self._limit is not None:
            with contextlib.suppress(OSError):  # it was killed
                os.write(cast(IO[bytes], self._limit.stdin).fileno(), b"stop")
        self._stopping = True


def _leave_to_thread(_number: int, _frame: FrameType | None) -> None:
    """A handler in Python is needed for the number to be written to the pipe."""
