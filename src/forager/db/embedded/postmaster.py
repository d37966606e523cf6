"""The server's main process: found by its pid file, and trusted only after a check."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from pathlib import Path

import psutil

# a backend calls itself "postgres: ..."; the postmaster keeps its command line
_BACKEND_TITLE = "postgres: "
_NAME = "postgres"


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A living server of a data folder."""

    process: psutil.Process
    socket_folder: Path | None
    status: str

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def ready(self) -> bool:
        return self.status == "ready" and self.socket_folder is not None

    def signal(self, number: signal.Signals) -> None:
        """psutil compares the start time first, so a pid that is another's now is not hit."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.send_signal(number)


def find_postmaster(data: Path) -> Postmaster | None:
    """The server that runs on this data folder, if its pid file is correct."""
    lines = _pid_file(data)
    if not lines or not lines[0].strip().isdecimal():
        return None
    try:
        process = psutil.Process(int(lines[0]))
    except (psutil.Error, OverflowError):
        return None
    if not _works_in(process, data) or _is_backend(process):
        return None
    # pid, data folder, start time, port, socket folder, address, shared memory, status
    status = lines[7].strip() if len(lines) > 7 else "starting"
    return Postmaster(process, _socket_folder(lines), status)


def forget_reused_pid(data: Path) -> None:
    """Remove a pid file whose pid is another process now: the server would trust it.

    Only for a caller that knows that no server lives. The server itself copes with dead pids.
    """
    lines = _pid_file(data)
    if lines and lines[0].strip().isdecimal() and psutil.pid_exists(int(lines[0])):
        (data / "postmaster.pid").unlink(missing_ok=True)


def last_socket_folder(data: Path) -> Path | None:
    """The socket folder of a killed server, to which its users still connect."""
    return _socket_folder(_pid_file(data))


def kill_orphans(data: Path) -> int:
    """End the backends of a killed server: a busy one would keep its memory until it is done.

    Nothing is lost by it. What they committed is on disk, and the rest is undone by recovery.
    """
    killed = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if _works_in(process, data) and _is_backend(process) and _is_orphan(process):
                process.kill()
                killed += 1
    return killed


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []


def _socket_folder(lines: list[str]) -> Path | None:
    return Path(lines[4]) if len(lines) > 4 and lines[4] else None


def _works_in(process: psutil.Process, data: Path) -> bool:
    try:
        return (
            process.name() == _NAME
            and process.status() != psutil.STATUS_ZOMBIE
            and data.samefile(process.cwd())
        )
    except (psutil.Error, OSError):
        return False


def _is_backend(process: psutil.Process) -> bool:
    try:
        return " ".join(process.cmdline()).startswith(_BACKEND_TITLE)
    except psutil.Error:
        return False


def _is_orphan(process: psutil.Process) -> bool:
    parent = process.parent()
    return parent is None or parent.name() != _NAME
