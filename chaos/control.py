"""The control folder: small files by which the harness controls the processes it started."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from uuid import UUID

# what processes of the cluster need to import this package
ROOT = Path(__file__).parents[1]
# environment variables of all processes of the cluster, except sandboxed ones
FOLDER = "CHAOS_FOLDER"
SLOT = "CHAOS_SLOT"
BREAK = "CHAOS_BREAK"

_LOSS_RATE = "lost-answer-rate"
_FULL = "disk-full"
_LOST_ANSWERS = "lost-answers"
_ENGINE_STARTS = "engine-starts"
# how long a process caches a file
_CACHED_FOR = 0.1


class Control:
    """Written by the harness, read by the processes. `slot` identifies a process."""

    def __init__(self, folder: Path, slot: str = "") -> None:
        self.folder = folder
        self.slot = slot
        self._read: dict[str, tuple[float, str]] = {}

    # --- the harness -------------------------------------------------------------------------

    def lose_answers(self, rate: float) -> None:
        """Set the share of database answers that are discarded."""
        self._write(_LOSS_RATE, str(rate))

    def fill_disk(self, full: bool) -> None:
        self._write(_FULL, "1" if full else "")

    def step_clock(self, slot: str, seconds: float) -> None:
        self._write(f"clock-{slot}", str(seconds))

    def count_lost_answers(self) -> int:
        with suppress(FileNotFoundError):
            return (self.folder / _LOST_ANSWERS).stat().st_size
        return 0

    def engine_starts(self) -> Counter[UUID]:
        """How often the engine of each crawl was started."""
        with suppress(FileNotFoundError):
            return Counter(map(UUID, (self.folder / _ENGINE_STARTS).read_text().split()))
        return Counter()

    # --- the processes -----------------------------------------------------------------------

    @property
    def lost_answer_rate(self) -> float:
        return float(self._text(_LOSS_RATE) or 0)

    @property
    def disk_is_full(self) -> bool:
        return bool(self._text(_FULL))

    @property
    def clock_step(self) -> float:
        return float(self._text(f"clock-{self.slot}") or 0)

    def record_lost_answer(self) -> None:
        self._append(_LOST_ANSWERS, ".")

    def record_engine_start(self, job_id: UUID) -> None:
        self._append(_ENGINE_STARTS, f"{job_id}\n")

    def _append(self, name: str, text: str) -> None:
        with (self.folder / name).open("ab", buffering=0) as file:
            file.write(text.encode())

    def _write(self, name: str, text: str) -> None:
        draft = self.folder / f".{name}"
        draft.write_text(text)
        draft.replace(self.folder / name)  # readers never see a partial file

    def _text(self, name: str) -> str:
        read_at, text = self._read.get(name, (float("-inf"), ""))
        now = time.monotonic()
        if now - read_at > _CACHED_FOR:
            text = ""
            with suppress(OSError):
                text = (self.folder / name).read_text()
            self._read[name] = (now, text)
        return text


def from_environment() -> Control | None:
    """The control folder of this process; None outside a chaos run."""
    folder = os.environ.get(FOLDER)
    return None if folder is None else Control(Path(folder), os.environ.get(SLOT, ""))
