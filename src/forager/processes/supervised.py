"""A supervised process: started, monitored, limited and ended by its supervisor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from forager.logs import get_logger
from forager.processes.child import ChildProcess
from forager.processes.control import (
    Assignment,
    Message,
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
IDLE_LOOK_INTERVAL = 2.0
# importing takes a second, unless the machine is very busy
START_LIMIT = 60.0
# if our own loop stood still for this long, the silence of others means nothing
OWN_GAP = 5.0


class SupervisedProcess:
    """A child process with a control socket. `name` is how messages refer to it."""

    def __init__(
        self,
        module: str,
        assignment: Assignment,
        *,
        name: str,
        mark: str,
        on_exit: Callable[[], None] = lambda: None,
        spare: StartedProcess | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        """A `spare` process of the module is used if there is one and it still runs; another one
        imports the modules in `preload` when it starts."""
        self.exited = asyncio.Event()
        self.kill_reason: str | None = None
        # it ended itself because a lease was not renewed, which is not the fault of its work
        self.unrenewed = False
        self.memory_mb = 0.0
        self.started = self.last_tick = time.monotonic()
        self._name = name
        self._has_ticked = False
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._incoming = self._outgoing = b""
        if spare is None or spare.is_assigned or spare.process.poll() is not None:
            spare = StartedProcess(module, mark=mark, preload=preload)
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
        """Send a message without waiting; the process reads it in order."""
        self._outgoing += encode(message)
        self._flush()

    def shows_life(self, within: float) -> bool:
        """Whether it runs and reported within this number of seconds."""
        return not self.exited.is_set() and time.monotonic() - self.last_tick <= within

    def ask_to_stop(self, cause: StopCause) -> None:
        """Ask for the end of all its work, and then its own."""
        self.send(Stop(cause))

    @property
    def is_busy(self) -> bool:
        """Whether its limits are checked often."""
        return True

    def kill(self, reason: str | None = None) -> None:
        """End it and all it started at once, for the reason that the history will state."""
        if not self.exited.is_set():
            self.kill_reason = self.kill_reason or reason
            self._child.kill()

    def how_it_ended(self) -> str:
        """Why it was killed, or how it ended by itself."""
        return self.kill_reason or f"{self._name} {self._child.how_it_ended()}"

    # --- limits ----------------------------------------------------------------------------

    def forgive_silence(self) -> None:
        """Restart the counters: it was this process that did not run."""
        self.last_tick = time.monotonic()

    def enforce_limits(self, settings: Settings) -> None:
        """Kill it if it exceeds a limit."""
        reason = self.broken_limit(settings)
        if reason is not None:
            log.warning("process killed", pid=self.pid, reason=reason)
            self.kill(reason)

    def broken_limit(self, settings: Settings) -> str | None:
        """The limit it has exceeded, as text for the history; None if there is none."""
        if self.exited.is_set():
            return None
        limit = settings.stall_limit if self._has_ticked else max(START_LIMIT, settings.stall_limit)
        if time.monotonic() - self.last_tick > limit:
            return f"{self._name} was frozen: no sign of life for {limit:g} s (stall_limit)"
        return self._broken_memory_limit(settings.job_memory_limit_mb)

    def _broken_memory_limit(self, limit: int) -> str | None:
        self.memory_mb = resident_mb(self.pid)
        if self.memory_mb <= limit:
            return None
        used = f"{self.memory_mb:.0f} MB"
        return f"{self._name} used {used}, more than {limit} MB (job_memory_limit_mb)"

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
            self.last_tick = time.monotonic()
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
        is_busy = any(process.is_busy for process in processes())
        await asyncio.sleep(LOOK_INTERVAL if is_busy else IDLE_LOOK_INTERVAL)
        now = time.monotonic()
        for process in processes():
            if now - last_look > OWN_GAP:
                process.forgive_silence()
            process.enforce_limits(settings)
        last_look = now
