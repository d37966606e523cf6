"""A sandboxed process whose requests say how it misbehaves."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from forager.processes.serving import Response, limit_memory, serve

FOLDER = Path(sys.argv[1])
MEMORY_MB = 300


def handle(request: dict[str, Any], body: bytes) -> Response:
    attempt = _note_attempt(request["id"])
    return {"said": _ACTIONS[body.decode()](attempt), "pid": os.getpid()}, []


def _note_attempt(number: int) -> int:
    """How often this request was received, by any process."""
    path = FOLDER / f"attempts-{number}"
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return len(path.read_text().split())


def _echo(attempt: int) -> str:
    return f"attempt {attempt}"


def _hang_at_first(attempt: int) -> str:
    while attempt == 1:
        time.sleep(0.001)  # too short to be seen asleep each time, and the test ends it
    return _echo(attempt)


def _spin(_: int) -> str:
    while True:
        pass


def _sleep(_: int) -> str:
    time.sleep(600)
    return "awake"


def _crash(_: int) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "alive"


def _crash_at_first(attempt: int) -> str:
    return _crash(attempt) if attempt == 1 else _echo(attempt)


def _leave_a_child(attempt: int) -> str:
    """A child in its own session, which holds every stream of this process; and a crash."""
    if os.fork() == 0:
        os.setsid()
        (FOLDER / f"child-{os.getpid()}").touch()
        time.sleep(600)
        os._exit(0)
    while len(list(FOLDER.glob("child-*"))) < attempt:
        time.sleep(0.01)
    return _crash(attempt)


def _share_memory(_: int) -> str:
    shared = mmap.mmap(-1, 2 * MEMORY_MB * 2**20)
    for place in range(0, len(shared), mmap.PAGESIZE):
        shared[place] = 1
    while True:  # until the limit is noticed
        time.sleep(0.01)


def _print(_: int) -> str:
    os.write(1, b"printed by a library")
    print("printed by a plug-in", flush=True)
    return "printed"


def _environment(_: int) -> str:
    return " ".join(sorted(os.environ))


def _send_nonsense(attempt: int) -> str:
    if attempt == 1:
        for descriptor in range(3, 20):
            try:
                os.write(descriptor, b"\x02\0\0\0\0\0\0\0[]")
            except OSError:
                continue
        time.sleep(600)
    return _echo(attempt)


_ACTIONS = {
    "echo": _echo,
    "hang at first": _hang_at_first,
    "spin": _spin,
    "sleep": _sleep,
    "crash": _crash,
    "crash at first": _crash_at_first,
    "leave a child": _leave_a_child,
    "share memory": _share_memory,
    "print": _print,
    "environment": _environment,
    "send nonsense": _send_nonsense,
}


if __name__ == "__main__":
    limit_memory(MEMORY_MB)
    serve(handle)
