"""The progress bar of commands that work in steps."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from forager.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress

PLAIN_INTERVAL = 10.0


class Steps:
    """Counts steps, of a total if that is known; prints nothing unless `shown`.

    The bar appears with the first step, and leaves no trace when it stops.
    """

    def __init__(self, what: str, total: int | None = None, *, shown: bool = True) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._shown = shown
        self._printed_at = time.monotonic()
        self._bar: Progress | None = None

    def advance(self, count: int) -> None:
        self.show(self._done + count)

    def show(self, done: int, *, total: int | None = None, what: str | None = None) -> None:
        self._done, self._total, self._what = done, total or self._total, what or self._what
        if self._shown and sys.stderr.isatty():
            self._move_bar()
        elif self._shown and time.monotonic() - self._printed_at >= PLAIN_INTERVAL:
            self._printed_at = time.monotonic()
            of = "" if self._total is None else f" of {self._total}"
            console(sys.stderr).print(f"{self._what}: {done}{of}")

    def _move_bar(self) -> None:
        if self._bar is None:
            from rich.progress import Progress

            self._bar = Progress(console=console(sys.stderr), transient=True)
            self._task = self._bar.add_task(self._what)
        self._bar.start()
        self._bar.update(
            self._task, description=self._what, completed=self._done, total=self._total
        )

    def stop(self) -> None:
        """Remove the bar; to be called before anything else is printed."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
