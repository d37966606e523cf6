"""Limits of time, memory and traffic of a rendered page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

from forager.settings import Settings

# the factor by which slow responses or a slow machine may prolong a page
WALL_CLOCK_FACTOR = 10
SETTLE_SECONDS = 8.0
# default memory limit of a browser: for itself, and for each page
BROWSER_MB = 512
PAGE_MB = 256


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """`seconds`: processor time of a page, and time in which it waits for nothing but itself."""

    pages: int = 2
    seconds: float = 20.0
    # after the document was parsed, for a page whose content never stops changing
    settle_seconds: float = SETTLE_SECONDS
    memory_mb: int = 1024
    requests: int = 200
    bytes: int = 50 * 2**20
    cache_bytes: int = 64 * 2**20
    # a browser is replaced after this many pages: Playwright's contexts leak
    pages_per_browser: int = 200

    @classmethod
    def of(cls, settings: Settings) -> Self:
        seconds = settings.render_time_limit
        pages = settings.render_pages or max(1, min(8, os.cpu_count() or 1))
        return cls(
            pages=pages,
            seconds=seconds,
            settle_seconds=min(SETTLE_SECONDS, seconds),
            memory_mb=settings.render_memory_mb or BROWSER_MB + pages * PAGE_MB,
        )

    @property
    def wall_seconds(self) -> float:
        return self.seconds * WALL_CLOCK_FACTOR
