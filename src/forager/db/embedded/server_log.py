"""The server's log file: kept small, and quoted when something goes wrong."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator

from forager.db.embedded.folder import ServerFolder
from forager.logs import announce, get_logger

MAX_LOG_BYTES = 8 * 1024 * 1024
_TAIL_BYTES = 16 * 1024
_TAIL_LINES = 15


def open_log(folder: ServerFolder) -> int:
    """Open the log for appending, as the server's standard error."""
    fd = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    folder.hand_over(fd)
    return fd


def trim_log(folder: ServerFolder) -> None:
    """Rotate the log when it has grown, keeping one old file. A running server may have it open."""
    with contextlib.suppress(OSError):
        if folder.log.stat().st_size > MAX_LOG_BYTES:
            # the server appends, so after the truncation it continues at the start of the file
            shutil.copyfile(folder.log, folder.previous_log)
            folder.previous_log.chmod(0o600)
            os.truncate(folder.log, 0)


def log_size(folder: ServerFolder) -> int:
    try:
        return folder.log.stat().st_size
    except OSError:
        return 0


def last_line(folder: ServerFolder) -> str:
    return log_end(folder).rsplit("\n", 1)[-1]


def log_end(folder: ServerFolder, since: int = 0) -> str:
    """The last lines of the log, not counting what was there before `since`."""
    try:
        with folder.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(since if since <= size else 0, size - _TAIL_BYTES))
            text = log.read(_TAIL_BYTES).decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-_TAIL_LINES:])


PROGRESS_INTERVAL = 5.0
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1

log = get_logger("db.embedded")


def moments(limit: float, message: str, folder: ServerFolder) -> Iterator[float]:
    """Times to check again, until the limit, with a log line every few seconds."""
    began = time.monotonic()
    said = 0.0
    while (waited := time.monotonic() - began) < limit:
        yield waited
        if waited - said > PROGRESS_INTERVAL:
            said = waited
            announce(log, message, seconds=round(waited), server_says=last_line(folder))
        time.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE + waited / 20))
