"""What all servers have in common: a folder, a port, a guard, and knowing when they are ready."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import psutil

GUARD = Path(__file__).with_name("guard.py")
LOOK_EVERY = 0.1
PORTS = range(20_000, 32_000)
# of the last lines of its log, when a server does not start
LOG_SHOWN = 3000


class NotStartedError(Exception):
    """The server cannot be had or does not start; says why."""


class Server(ABC):
    """One server on loopback. Its port stays the same when it is started again."""

    name: ClassVar[str]
    # generous: on a busy machine the slowest of them takes a minute
    ready_within: ClassVar[float] = 300.0

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._guard: subprocess.Popen[bytes] | None = None

    @classmethod
    @abstractmethod
    def obtain(cls) -> None:
        """Get or build the program, if it is not there yet."""

    @abstractmethod
    def configure(self) -> None:
        """Write what the program reads, into the folder."""

    @abstractmethod
    def command(self) -> list[str]:
        """How the program is started, in the foreground."""

    def environment(self) -> dict[str, str]:
        """What the program finds in its environment besides the usual."""
        return {}

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers; may raise OSError while it does not."""

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """The settings with which Forager uses it."""

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def start(self, *, detached: bool = False) -> None:
        """Start it and wait until it answers; it ends with this process unless detached."""
        self.obtain()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure()
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [
                    sys.executable,
                    str(GUARD),
                    *(["--detached"] if detached else []),
                    *self.command(),
                ],
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=os.environ | self.environment(),
                start_new_session=True,
            )
        (self.folder / "pid").write_text(str(self._guard.pid))
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Let it end in its own way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the server and all its processes."""
        self._end(signal.SIGUSR1)

    def wait_until_ready(self) -> None:
        limit = time.monotonic() + self.ready_within
        while not self._answers():
            if self._guard is not None and self._guard.poll() is not None:
                raise NotStartedError(f"{self.name} ended at once:\n{self._last_words()}")
            if time.monotonic() > limit:
                raise NotStartedError(f"{self.name} does not answer:\n{self._last_words()}")
            time.sleep(LOOK_EVERY)

    def guard_process(self) -> psutil.Process | None:
        """The guard of a server that runs in this folder, regardless of who started it."""
        with suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int((self.folder / "pid").read_text()))
            if str(GUARD) in process.cmdline():
                return process
        return None

    def _end(self, number: int) -> None:
        if self._guard is not None:
            self._guard.send_signal(number)
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            self._guard = None
        elif process := self.guard_process():
            process.send_signal(number)
            process.wait()
        (self.folder / "pid").unlink(missing_ok=True)

    def _answers(self) -> bool:
        try:
            return self.is_ready()
        except OSError:
            return False

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_SHOWN:]


def free_port() -> int:
    """Below the range from which the kernel gives ports to clients: none takes it meanwhile."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
