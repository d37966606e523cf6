"""The control folder: small files by which the harness reaches into the processes it started."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

# what processes of the cluster need to import this package
ROOT = Path(__file__).parents[1]
# names that are no settings of Forager, and reach all processes of the cluster but sandboxed ones
FOLDER = "CHAOS_FOLDER"
SLOT = "CHAOS_SLOT"
BREAK = "CHAOS_BREAK"

_LIES = "lies"
_FULL = "disk-full"
_TOLD = "told-lies"
# how long a process believes what it has read
_BELIEVED = 0.1


class Control:
    """Written by the harness, read by everybody else. `slot` is the place of a process."""

    def __init__(self, folder: Path, slot: str = "") -> None:
        self.folder = folder
        self.slot = slot
        self._read: dict[str, tuple[float, str]] = {}

    # --- the harness -------------------------------------------------------------------------

    def let_lie(self, rate: float) -> None:
        """From now on so many answers of the database are thrown away."""
        self._write(_LIES, str(rate))

    def fill_disk(self, full: bool) -> None:
        self._write(_FULL, "1" if full else "")

    def step_clock(self, slot: str, seconds: float) -> None:
        self._write(f"clock-{slot}", str(seconds))

    def lies_told(self) -> int:
        with suppress(FileNotFoundError):
            return (self.folder / _TOLD).stat().st_size
        return 0

    # --- the processes -----------------------------------------------------------------------

    @property
    def lie_rate(self) -> float:
        return float(self._text(_LIES) or 0)

    @property
    def disk_is_full(self) -> bool:
        return bool(self._text(_FULL))

    @property
    def clock_step(self) -> float:
        return float(self._text(f"clock-{self.slot}") or 0)

    def note_lie(self) -> None:
        with (self.folder / _TOLD).open("ab", buffering=0) as file:
            file.write(b".")

    def _write(self, name: str, text: str) -> None:
        draft = self.folder / f".{name}"
        draft.write_text(text)
        draft.replace(self.folder / name)  # nobody reads half of it

    def _text(self, name: str) -> str:
        read_at, text = self._read.get(name, (float("-inf"), ""))
        now = time.monotonic()
        if now - read_at > _BELIEVED:
            text = ""
            with suppress(OSError):
                text = (self.folder / name).read_text()
            self._read[name] = (now, text)
        return text


def from_environment() -> Control | None:
    """The control of this process; None if it was not started by a harness."""
    folder = os.environ.get(FOLDER)
    return None if folder is None else Control(Path(folder), os.environ.get(SLOT, ""))
