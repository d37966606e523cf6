"""Progress of a run on standard error: a bar on a terminal, a line every 10 seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Self

from chaos.run import Plan
from forager.cli import output

LINE_INTERVAL = 10.0


class RunProgress:
    def __init__(self, plan: Plan) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = output.console(sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(f"seed {plan.seed}", total=plan.faults or None)
        self._seed = plan.seed
        self._printed_at = float("-inf")

    def show_progress(self, phase: str, numbers: dict[str, int]) -> None:
        message = ", ".join(f"{count} {what}" for what, count in numbers.items())
        self._bar.update(self._task, description=f"{phase}: {message}", completed=numbers["faults"])
        now = time.monotonic()
        if not self._console.is_terminal and now - self._printed_at >= LINE_INTERVAL:
            self._printed_at = now
            output.note(f"seed {self._seed}, {phase}: {message}")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
