"""How far a long command is, on standard error: a bar on a terminal, elsewhere a line at times."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from forager.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_INTERVAL = 10.0


class Steps:
    """So many of so many; silent when it is not wanted."""

    def __init__(self, what: str, total: int, *, shown: bool = True) -> None:
        self._what = what
        self._total = total
        self._shown = shown
        self._said = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty():
            from rich.progress import Progress

            self._bar = Progress(console=console(sys.stderr), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif self._shown and time.monotonic() - self._said >= PLAIN_INTERVAL:
            self._said = time.monotonic()
            console(sys.stderr).print(f"{self._what}: {done} of {self._total}")
