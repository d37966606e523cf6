"""Where the API of this home listens, noted in a file: --host and --port are in no settings."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

FOLDER = "listening"
CONNECT_LIMIT = 1.0


@contextmanager
def noted_address(home: Path, address: str) -> Iterator[None]:
    """Write the address to a file while the block runs; a failure to write is ignored."""
    note = home / FOLDER / str(os.getpid())
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        note.write_text(address, encoding="utf-8")
    try:
        yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)


def listening_addresses(home: Path) -> list[str]:
    """Noted addresses that something listens on; a process that was killed leaves its note."""
    found = []
    for note in sorted((home / FOLDER).glob("*")):
        with suppress(OSError, ValueError):
            address = note.read_text(encoding="utf-8")
            if _answers(address):
                found.append(address)
            else:
                note.unlink(missing_ok=True)
    return found


def _answers(address: str) -> bool:
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_LIMIT):
            return True
    except OSError:
        return False
