"""The `forager` command: in this process, or in a separate one where a test is about processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from forager.cli.main import run

FORAGER = Path(sys.executable).parent / "forager"
LIMIT = 60


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def forager(*arguments: object, stdin: bytes = b"", **environment: str) -> Finished:
    """Run the command here, without the second that a process needs to start.

    The calling thread must have no event loop, because the command has its own.
    """
    changed = patch.dict(os.environ, environment)
    with changed, CliRunner().isolation(stdin) as (out, err, _):
        code = run([str(argument) for argument in arguments])
        return Finished(code, out.getvalue().decode(), err.getvalue().decode())


def forager_process(*arguments: object, **environment: str) -> Finished:
    done = subprocess.run(
        [FORAGER, *map(str, arguments)],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a separate process, which is killed at the end."""
    process = subprocess.Popen([FORAGER, *arguments], stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
