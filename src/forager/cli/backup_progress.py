"""How far a backup is, on standard error: a line that moves on a terminal, else a line a step."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from forager.cli import output
from forager.cli.words import counted

if TYPE_CHECKING:
    from rich.status import Status


class BackupProgress:
    """To be told each step, and how many files it has copied."""

    def __init__(self) -> None:
        self._console = output.console(sys.stderr)
        self._status: Status | None = None
        self._step = ""

    def show(self, step: str, files: int) -> None:
        if self._console.is_terminal:
            self._move(f"{step}, {counted(files, 'file')}" if files else step)
        elif step != self._step:
            output.note(f"{step} ...")
        self._step = step

    def _move(self, words: str) -> None:
        if self._status is None:
            self._status = self._console.status(words)
            self._status.start()
        self._status.update(words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
