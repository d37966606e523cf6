"""`forager api` in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

FORAGER = Path(sys.executable).parent / "forager"
WAIT_LIMIT = 60.0


def api_process(folder: Path, *arguments: str, **environment: str) -> AbstractContextManager[str]:
    """The address of a server, which must stop cleanly at the end."""
    return server_process([str(FORAGER), "api", "--port", "0", *arguments], folder, environment)


@contextmanager
def server_process(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    log = folder / "api.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            env=os.environ | {"FORAGER_LOG_FORMAT": "json"} | environment,
            stdin=subprocess.DEVNULL,
            stderr=stderr,
            cwd=folder,
        )
        try:
            yield wait_for_address(log, process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_LIMIT) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()


def wait_for_address(log: Path, process: subprocess.Popen[bytes]) -> str:
    give_up = time.monotonic() + WAIT_LIMIT
    while process.poll() is None and time.monotonic() < give_up:
        for line in log.read_text().splitlines():
            if '"api listens"' in line:
                return str(json.loads(line)["address"])
        time.sleep(0.05)
    raise AssertionError(log.read_text())
