"""The keeper: one worker process for tasks, started, watched, replaced when it dies, stopped."""

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
from uuid import UUID

from forager.db.database import Database
from forager.db.ids import new_id
from forager.db.patience import TROUBLE, Patience
from forager.logs import get_logger
from forager.settings import Settings
from forager.tasks.workers.control import Instructions
from forager.tasks.workers.lifeline import LAST_WORD
from forager.tasks.workers.recovery import TaskRecovery

log = get_logger("tasks")

PROGRAM = "forager.tasks"
FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0
# a worker that lived for so long was well, and the next start need not wait
WELL_AFTER = 60.0
LOOK_INTERVAL = 0.5
# if our own loop stood still for this long, nobody's silence means anything
OWN_GAP = 5.0
# importing takes a second, unless the machine is very busy
START_LIMIT = 60.0
KILL_LIMIT = 5.0
RECOVERY_INTERVAL = 1.0
STOPPED = "the worker was stopped"
UNRENEWED = "the row of the worker was not renewed in time"


class WorkerProcess:
    """A process group of its own, with a socket by which each notices the death of the other."""

    def __init__(
        self, worker_id: UUID, process: subprocess.Popen[bytes], control: socket.socket
    ) -> None:
        self.worker_id = worker_id
        self.pid = process.pid
        self.exited = asyncio.Event()
        self.exit_code: int | None = None
        self.last_tick: float | None = None
        # it ended itself because its row was not renewed, which is not the fault of its tasks
        self.unrenewed = False
        self.started = time.monotonic()
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()

    @classmethod
    def start(cls, instructions: Instructions, program: str = PROGRAM) -> Self:
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # standard output belongs to the data of the command that started us
                stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
                # its own group, so that Ctrl-C does not reach it and a kill reaches its children
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = cls(instructions.worker_id, process, ours)
        with contextlib.suppress(OSError):  # it is gone already, which is noticed elsewhere
            ours.sendall(instructions.encode())
        ours.setblocking(False)
        worker._loop.add_reader(ours.fileno(), worker._read)
        threading.Thread(target=worker._await_exit, name="task worker exit", daemon=True).start()
        return worker

    @property
    def silent_for(self) -> float:
        """Seconds since its loop last turned; 0 while it starts."""
        now = time.monotonic()
        if self.last_tick is None:
            return max(0.0, now - self.started - START_LIMIT)
        return now - self.last_tick

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        if not self.exited.is_set():
            _kill_group(self.pid)

    def how_it_ended(self) -> str:
        code = self.exit_code or 0
        return f"killed by signal {-code}" if code < 0 else f"exited with code {code}"

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
        self.last_tick = time.monotonic()
        self.unrenewed = self.unrenewed or LAST_WORD in data
        return True

    def _await_exit(self) -> None:
        # the dead leader stays in the table until its group's survivors have been killed
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        _kill_group(self.pid)
        code = self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._note_exit, code)

    def _note_exit(self, code: int) -> None:
        while self._read():  # its last words
            pass
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        self.exit_code = code
        self.exited.set()


class TaskKeeper:
    """Keeps one worker for tasks running until told to stop."""

    def __init__(self, database: Database, settings: Settings, program: str = PROGRAM) -> None:
        self.worker: WorkerProcess | None = None
        self._program = program
        self._database = database
        self._settings = settings
        self._recovery = TaskRecovery(database, settings)
        self._stopping = asyncio.Event()
        self._delay = FIRST_DELAY

    def stop(self) -> None:
        """Ask for a graceful stop: the worker commits what it has and gives the rest back."""
        self._stopping.set()

    async def run(self) -> None:
        try:
            while not self._stopping.is_set():
                await self._run_one()
        finally:
            if self.worker is not None:
                self.worker.kill()

    async def _run_one(self) -> None:
        """Start a worker, watch it to its end, and see to what it leaves behind."""
        worker = self._start()
        if worker is not None:
            await self._watch(worker)
            if self._stopping.is_set():
                await self._end(worker)
                return
            well = time.monotonic() - worker.started >= WELL_AFTER
            self._delay = FIRST_DELAY if well else self._delay
            log.warning(
                "task worker died, another one is started",
                reason=worker.how_it_ended(),
                seconds=self._delay,
            )
            await self._recover(worker)
        await self._wait(self._delay)
        self._delay = min(LONGEST_DELAY, 2 * self._delay)

    def _start(self) -> WorkerProcess | None:
        instructions = Instructions(new_id(), self._database.url, self._settings)
        try:
            self.worker = WorkerProcess.start(instructions, self._program)
        except OSError as error:  # too many processes or files, or no memory
            log.error("no task worker could be started", reason=str(error))
            return None
        return self.worker

    async def _watch(self, worker: WorkerProcess) -> None:
        """Until it has ended or we are to stop; one that is frozen is killed."""
        last_look = time.monotonic()
        while not (worker.exited.is_set() or self._stopping.is_set()):
            now = time.monotonic()
            if now - last_look > OWN_GAP and worker.last_tick is not None:
                worker.last_tick = now
            last_look = now
            if worker.silent_for > self._settings.stall_limit:
                log.warning("task worker is frozen, and killed", pid=worker.pid)
                worker.kill()
            await _first_of(worker.exited, self._stopping, timeout=LOOK_INTERVAL)

    async def _end(self, worker: WorkerProcess) -> None:
        worker.terminate()
        await _first_of(worker.exited, timeout=self._settings.shutdown_grace)
        worker.kill()
        await _first_of(worker.exited, timeout=KILL_LIMIT)
        if worker.exit_code != 0 and worker.exited.is_set():
            # it had to be killed: others need not wait until they notice
            with contextlib.suppress(*TROUBLE):
                await self._recovery.release_worker(worker.worker_id, reason=STOPPED)

    async def _recover(self, worker: WorkerProcess) -> None:
        """Give its tasks back at once; if the database is away, as soon as it is back."""
        patience = Patience(log, "tasks of the dead worker cannot be recovered yet")
        revival = Patience(log, "the embedded database does not start")
        while not self._stopping.is_set():
            with patience:
                if worker.unrenewed:
                    await self._recovery.release_worker(worker.worker_id, reason=UNRENEWED)
                else:
                    await self._recovery.recover_worker(worker.worker_id)
                return
            with revival:
                await self._database.revive()
            await self._wait(RECOVERY_INTERVAL)

    async def _wait(self, seconds: float) -> None:
        await _first_of(self._stopping, timeout=seconds)


async def _first_of(*events: asyncio.Event, timeout: float) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _has_descriptor(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):  # replaced or closed
        return False
