"""A supervised process: started, monitored, limited and ended by its supervisor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from forager.logs import get_logger
from forager.processes.child import ChildProcess
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
)
from forager.processes.started import StartedProcess
from forager.processes.tree import resident_mb
from forager.settings import Settings

log = get_logger("processes")

LOOK_INTERVAL = 0.5
# the process itself cancels work that does not stop; a frozen one cannot
PAUSE = Stop(StopCause.PAUSE)
PAUSE_LIMIT = 10.0
# importing takes a second, unless the machine is very busy
START_LIMIT = 60.0
# if our own loop stood still for this long, the silence of others means nothing
OWN_GAP = 5.0


class SupervisedProcess:
    """A child process with a control socket. `name` is how messages refer to it.

    With `counts_run` its whole run has a time limit, otherwise each piece of its work.
    """

    def __init__(
        self,
        module: str,
        assignment: Assignment,
        *,
        name: str,
        mark: str,
        counts_run: bool = True,
        on_exit: Callable[[], None] = lambda: None,
        spare: StartedProcess | None = None,
    ) -> None:
        """A `spare` process of the module is used if there is one and it still runs."""
        self.exited = asyncio.Event()
        self.kill_reason: str | None = None
        # it ended itself because its lease was not renewed, which is not the fault of its work
        self.unrenewed = False
        self.stop_sent: Stop | None = None
        self.stop_sent_at: float | None = None
        self.started = self.last_tick = self.last_progress = time.monotonic()
        self._name = name
        self._counts_run = counts_run
        self._has_ticked = False
        self._busy_for = 0.0
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._incoming = self._outgoing = b""
        if spare is None or spare.is_assigned or spare.process.poll() is not None:
            spare = StartedProcess(module, mark=mark)
        spare.is_assigned = True
        self._control = spare.control
        try:
            self._child = ChildProcess(spare.process, mark=spare.mark, on_exit=self._note_exit)
        except OSError:
            self._control.close()
            raise
        self.send(assignment)
        self._loop.add_reader(self._control.fileno(), self._read)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        return self._child.exit_code

    def send(self, message: Message) -> None:
        self._outgoing += encode(message)
        self._flush()

    def renewed(self, at: float) -> None:
        self.send(Renewed(at))

    def shows_life(self, within: float) -> bool:
        return not self.exited.is_set() and time.monotonic() - self.last_tick <= within

    def ask_to_stop(self, cause: StopCause) -> None:
        stop = Stop(cause)
        if self.stop_sent != stop:
            self.stop_sent = stop
            self.stop_sent_at = time.monotonic()
            self.send(stop)

    def carry_on(self) -> None:
        if self.stop_sent is not None:
            self.stop_sent = self.stop_sent_at = None
            self.send(Continue())

    def kill(self, reason: str | None = None) -> None:
        """End it and all it started at once, for the reason that the history will state."""
        if not self.exited.is_set():
            self.kill_reason = self.kill_reason or reason
            self._child.kill()

    def how_it_ended(self) -> str:
        return self.kill_reason or f"{self._name} {self._child.how_it_ended()}"

    # --- limits ----------------------------------------------------------------------------

    def forgive_silence(self) -> None:
        """Restart the counters: it was this process that did not run."""
        self.last_tick = self.last_progress = time.monotonic()

    def broken_limit(self, settings: Settings) -> str | None:
        """The limit it has exceeded, as text for the history; None if there is none."""
        if self.exited.is_set():
            return None
        now = time.monotonic()
        limit = settings.stall_limit if self._has_ticked else max(START_LIMIT, settings.stall_limit)
        if now - self.last_tick > limit:
            return f"{self._name} was frozen: no sign of life for {limit:g} s (stall_limit)"
        limit = settings.progress_limit
        if now - self.last_progress > limit:
            return f"{self._name} was stuck: no progress for {limit:g} s (progress_limit)"
        return self._broken_time_limit(now, settings) or self._broken_memory_limit(settings)

    def _broken_time_limit(self, now: float, settings: Settings) -> str | None:
        limit = settings.job_time_limit
        busy_for = now - self.started if self._counts_run else self._busy_for
        if limit is not None and busy_for > limit:
            what = "run" if self._counts_run else "a task"
            return f"{what} took longer than {limit:g} s (job_time_limit)"
        if self.stop_sent == PAUSE and now - (self.stop_sent_at or now) > PAUSE_LIMIT:
            return f"{self._name} did not pause within {PAUSE_LIMIT:g} s"
        return None

    def _broken_memory_limit(self, settings: Settings) -> str | None:
        limit, memory = settings.job_memory_limit_mb, resident_mb(self.pid)
        if memory <= limit:
            return None
        return f"{self._name} used {memory:.0f} MB, more than {limit} MB (job_memory_limit_mb)"

    # --- the socket ------------------------------------------------------------------------

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
        """Handle received messages; returns whether there may be more."""
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
            self._has_ticked = True
            self._busy_for = message.busy_for or 0.0
            self.last_tick = time.monotonic()
            if message.progress:
                self.last_progress = self.last_tick
        elif isinstance(message, Unrenewed):
            self.unrenewed = True

    def _note_exit(self) -> None:
        while self._read():  # its last messages
            pass
        self._loop.remove_reader(self._control.fileno())
        self._loop.remove_writer(self._control.fileno())
        self._control.close()
        self.exited.set()
        self._on_exit()


async def watch_limits(
    processes: Callable[[], Iterable[SupervisedProcess]], settings: Settings
) -> None:
    """Kill processes that break a limit, until cancelled. Needs no database."""
    last_look = time.monotonic()
    while True:
        await asyncio.sleep(LOOK_INTERVAL)
        now = time.monotonic()
        for process in processes():
            if now - last_look > OWN_GAP:
                process.forgive_silence()
            reason = process.broken_limit(settings)
            if reason is not None:
                log.warning("process killed", pid=process.pid, reason=reason)
                process.kill(reason)
        last_look = now
