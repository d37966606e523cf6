"""Clock jumps: change the time of day that a process sees, not its timers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, tzinfo
from types import ModuleType
from typing import Self

from chaos.control import Control

# modules whose time of day may reach the database, the archive or another host
ASKED_IN = (
    "forager.archive.writer",
    "forager.tasks.stages.deposit",
    "forager.crawl.frontier.discovery",
    "forager.fetch.response",
)


def install(control: Control) -> None:
    original = time.time

    def stepped() -> float:
        return original() + control.clock_step

    time.time = stepped


def patches() -> dict[str, Callable[[ModuleType], None]]:
    class SteppedTime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time(), tz)

    def change(module: ModuleType) -> None:
        module.datetime = SteppedTime  # type: ignore[attr-defined]

    return dict.fromkeys(ASKED_IN, change)
