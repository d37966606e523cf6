"""Every command of the tutorials runs in one shell, and prints what the page shows.

`…` in a page stands for anything. A command that only reads is repeated until its output
matches, as a reader would do while Forager works in the background.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forager.db.embedded.binaries import find_binaries

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
BIN = Path(sys.executable).parent
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
READING = re.compile(
    r"(forager (\S+ )?(list|show|history|workers|generations|diff|read|search|explain)\b|curl\b)"
)
WAIT_LIMIT = 100
LONGEST_PAUSE = 5.0
PORTS = ("8725", "8700")  # of the bundled site and of the API


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Each command, with the output that the page shows below it."""
    for block in CONSOLE.findall(text):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = step.splitlines(keepends=True)
            yield "".join(lines[: (end := _command_end(lines))]), "".join(lines[end:])


def _command_end(lines: list[str]) -> int:
    """A command ends where no backslash continues it, or with the last line of its text."""
    if "<< END" in lines[0]:
        return lines.index("END\n") + 1
    return next(n for n, line in enumerate(lines, 1) if not line.endswith("\\\n"))


def matches(shown: str, output: str) -> bool:
    pattern = ".*".join(re.escape(part.strip()) for part in shown.split("…"))
    return not shown or re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


class Shell:
    """One bash in which commands run one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, command: str) -> tuple[int, str]:
        assert self._process.stdin
        assert self._process.stdout
        mark = secrets.token_hex(8)
        self._process.stdin.write(f"{command}\necho {mark} $?\n")
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            before, found, code = line.partition(mark)
            lines.append(before)
            if found:
                return int(code), "".join(lines)
        raise AssertionError(f"the shell ended in {command!r}: {''.join(lines)}")


@contextmanager
def shell(environment: dict[str, str], folder: Path) -> Iterator[Shell]:
    with subprocess.Popen(
        ["bash", "--norc"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
    ) as process:
        bash = Shell(process)
        try:
            yield bash
        finally:
            bash.run("kill $(jobs -p) 2> /dev/null; wait")
            assert process.stdin
            process.stdin.close()


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_tutorial(page: Path, database_url: str, tmp_path: Path) -> None:
    site, api = free_port(), free_port()
    text = page.read_text(encoding="utf-8").replace(PORTS[0], site).replace(PORTS[1], api)
    text = text.replace("forager demo --serve", f"forager demo --serve --port {site}")
    environment = os.environ | {
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_HOME": str(tmp_path / "home"),
        "FORAGER_API_PORT": api,
        "FORAGER_POLL_INTERVAL": "0.1",
        "FORAGER_EXTRACTION_PROCESSES": "1",
        # pg_dump must not be older than the server
        "PATH": f"{BIN}:{find_binaries().postgres.parent}:{os.environ['PATH']}",
    }
    found = list(steps(text))
    assert len(found) > 8
    with shell(environment, tmp_path) as bash:
        for command, shown in found:
            deadline, pause = time.monotonic() + WAIT_LIMIT, 1.0
            while True:
                code, output = bash.run(command)
                if code == 0 and matches(shown, output):
                    break
                retry = READING.match(command) and time.monotonic() < deadline
                assert retry, (
                    f"$ {command}{output}\n(exit code {code}), but the page shows:\n{shown}"
                )
                time.sleep(pause)  # each try starts a process
                pause = min(1.5 * pause, LONGEST_PAUSE)
