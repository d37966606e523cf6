"""`forager search` in a running installation: its API process searches and returns the text.

Importing and connecting takes longer than most searches, and that process has done it. It imports
only what each Python process has anyway. A search that cannot be answered so is an ordinary
command, which also reports what is wrong with it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forager import __version__

COMMAND = "search"
SOCKET = "commands.sock"
# the search of an installation that is busy is repeated by the command itself
TIMEOUT = 10.0
_PREFIX = "FORAGER_"
_HOME = "FORAGER_HOME"
_CONFIG = "FORAGER_CONFIG"


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """What must be the same in both processes, beside the home folder in which they meet."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper().startswith(_PREFIX) and name.upper() != _HOME and value
    }


def depends_on_folder() -> bool:
    """Whether this process reads a settings file that another folder may not have."""
    path = Path(os.environ.get(_CONFIG) or "forager.toml")
    return not path.is_absolute() and path.exists()


def quick_answer(arguments: Sequence[str]) -> bool:
    """Print the answer of a running installation; False if there is none."""
    if arguments[:1] != [COMMAND] or depends_on_folder():
        return False
    try:
        answer = _ask(_home(), _question(arguments[1:]))
        if "out" not in answer:
            return False
        out, err = answer["out"].encode(), answer["err"].encode()
    except (OSError, RuntimeError, ValueError, AttributeError, TypeError):
        return False
    _write(sys.stdout.fileno(), out)
    _write(sys.stderr.fileno(), err)
    return True


def _home() -> Path:
    if home := os.environ.get(_HOME):
        return Path(home).expanduser().resolve()
    from platformdirs import user_data_path

    return user_data_path("forager", appauthor=False).resolve()


def _question(arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "version": __version__,
        "arguments": list(arguments),
        "settings": settings_of(os.environ),
        "language": os.environ.get("LANG"),
        "terminals": [_terminal(stream.fileno()) for stream in (sys.stdout, sys.stderr)],
    }


def _terminal(descriptor: int) -> dict[str, Any] | None:
    """The width and the colors of a terminal; None for a file or a pipe."""
    if not os.isatty(descriptor):
        return None
    names = ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS")
    known = {name: os.environ[name] for name in names if name in os.environ}
    return {"columns": os.get_terminal_size(descriptor).columns, "environment": known}


def _ask(home: Path, question: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(TIMEOUT)
        line.connect(str(home / SOCKET))
        line.sendall(json.dumps(question).encode())
        line.shutdown(socket.SHUT_WR)
        parts = []
        while part := line.recv(1 << 16):
            parts.append(part)
    answer: dict[str, Any] = json.loads(b"".join(parts))
    return answer


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:  # as under `| head`
        return
