"""Log lines while a progress bar is on the terminal: printed above it, not into it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

# a process that outlives the command keeps its end of the pipe open
LAST_LINES = 1.0


@contextmanager
def redirected_stderr(terminal: Callable[[TextIO], Callable[[str], None]]) -> Iterator[None]:
    """Give everything that is written to descriptor 2 to a printer, line by line.

    Processes that are started meanwhile write to the same place, so that their lines are caught
    as well. `terminal` gets the terminal itself, and returns the printer.
    """
    kept = os.dup(2)
    reading, writing = os.pipe()
    with os.fdopen(kept, "w", encoding="utf-8", errors="replace", closefd=False) as screen:
        thread = threading.Thread(
            target=_pass_on, args=(reading, terminal(screen)), name="log lines", daemon=True
        )
        os.dup2(writing, 2)
        os.close(writing)
        thread.start()
        try:
            yield
        finally:
            screen.flush()
            os.dup2(kept, 2)
            thread.join(LAST_LINES)
    os.close(kept)


def _pass_on(reading: int, show: Callable[[str], None]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            show(line.rstrip("\n"))
