"""A process that is started before its work is known, and before there is an event loop.

This module imports next to nothing: it runs before the modules that a command needs.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import IO

# Every process below one of ours inherits this variable, so a child that created its own session
# and lost its parent can still be found. (The prefix keeps it apart from the settings.)
MARK_VARIABLE = "_FORAGER_RUN"
# all variables that a plug-in can read: no settings, no credentials
_VARIABLES = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PREFIXES = ("PYTHON", "LC_")


def start_python(
    arguments: Sequence[str | bytes],
    *,
    mark: str,
    environment: Mapping[str, str] | None = None,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: IO[bytes] | int | None = None,
    stderr: int | None = None,
    pass_fds: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a Python module in its own session."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdin=stdin,
        stdout=(_log_stream() if stderr is None else stderr) if stdout is None else stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        env={**(os.environ if environment is None else environment), MARK_VARIABLE: mark},
        # its own group, so that Ctrl-C does not reach it and a kill reaches its children
        start_new_session=True,
    )


class StartedProcess:
    """A process that waits at its control socket for its assignment.

    Meanwhile it imports the modules in `preload`. It exits if this process exits first. With a
    `log_pipe` (its read end and its write end), it writes log lines there.
    """

    def __init__(
        self,
        module: str,
        *,
        mark: str,
        preload: Sequence[str] = (),
        log_pipe: tuple[int, int] | None = None,
    ) -> None:
        self.mark = mark
        self.log_pipe = log_pipe
        self.is_assigned = False
        self.control, theirs = socket.socketpair()
        self.control.setblocking(False)
        try:
            with theirs:
                self.process = start_python(
                    [module, str(theirs.fileno()), *preload],
                    mark=mark,
                    stderr=None if log_pipe is None else log_pipe[1],
                    pass_fds=[theirs.fileno()],
                )
        except OSError:
            self.control.close()
            raise

    def discard(self) -> None:
        """End it unless it has an assignment."""
        if not self.is_assigned:
            self.is_assigned = True
            self.control.close()
            if self.process.poll() is None:  # its number is not in use by another process
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def start_runner(*, holds_logs: bool = True) -> StartedProcess:
    """A process for crawls; importing its modules takes half a second.

    On a terminal it gets a pipe if it `holds_logs`, because a progress bar will be there when it
    logs something.
    """
    mark = f"spare {os.getpid()}-{os.urandom(8).hex()}"
    log_pipe = os.pipe() if holds_logs and os.isatty(2) else None
    preload = ["forager.crawl.job"]
    return StartedProcess("forager.jobs", mark=mark, preload=preload, log_pipe=log_pipe)


def clean_environment() -> dict[str, str]:
    """The part of the environment that a process gets which reads pages."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _VARIABLES or name.startswith(_PREFIXES)
    }


def _log_stream() -> int:
    """Standard error: standard output belongs to the data of the command that started us."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # replaced or closed
        return subprocess.DEVNULL
