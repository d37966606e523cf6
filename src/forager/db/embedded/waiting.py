"""Bounded waiting that tells the user what it waits for."""

from __future__ import annotations

import time
from collections.abc import Iterator

from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.server_log import last_line
from forager.logs import announce, get_logger

PROGRESS_INTERVAL = 5.0
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.1

log = get_logger("db.embedded")


def moments(limit: float, message: str, folder: ServerFolder) -> Iterator[float]:
    """Moments to look again, until the limit, with a word in the log every few seconds."""
    began = time.monotonic()
    said = 0.0
    while (waited := time.monotonic() - began) < limit:
        yield waited
        if waited - said > PROGRESS_INTERVAL:
            said = waited
            announce(log, message, seconds=round(waited), server_says=last_line(folder))
        time.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE + waited / 20))
