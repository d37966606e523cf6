"""Homes with an embedded server for tests, and processes that use them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from forager.db.embedded import join_server, server_status
from support.waiting import lives

LIMIT = 60.0
SCRIPT = Path(__file__).with_name("embedded_user.py")


@contextlib.contextmanager
def empty_home() -> Iterator[Path]:
    """A home that leaves nothing behind: neither tens of megabytes nor a server."""
    home = Path(tempfile.mkdtemp(prefix="forager-home-"))
    try:
        yield home
    finally:
        end_server(home)
        shutil.rmtree(home)


@contextlib.contextmanager
def made_home() -> Iterator[Path]:
    """A home whose database was already created and stopped."""
    with empty_home() as home:
        join_server(home).leave()
        yield home


@contextlib.contextmanager
def moved(home: Path, place: Path) -> Iterator[Path]:
    """The server's folder at another place for a while: copying it takes longer than making it."""
    place.mkdir(parents=True)
    (home / "postgres").rename(place / "postgres")
    try:
        yield place
    finally:
        end_server(place)
        (place / "postgres").rename(home / "postgres")


@contextlib.contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    """A file with other content for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def end_server(home: Path) -> None:
    if pid := server_status(home).pid:
        kill(pid, signal.SIGQUIT)


class User:
    """A process that has joined, or is about to."""

    def __init__(self, home: Path, *, prefix: Sequence[str] = (), **environment: str) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(SCRIPT), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def answer(self) -> dict[str, Any]:
        """The next thing it says; its limits are the life-cycle's own."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"user ended with {self.process.wait(LIMIT)}"
        facts: dict[str, Any] = json.loads(line)
        return facts

    def tell(self, *words: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.writelines(f"{word}\n" for word in words)
        self.process.stdin.flush()

    def ask(self, word: str) -> dict[str, Any]:
        self.tell(word)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # the end of its input is the end of the process, which leaves by itself
        self.process.communicate(timeout=LIMIT)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)
    wait_until(lambda: not lives(pid))


def wait_until(happened: Callable[[], bool]) -> None:
    """Look until it happened; the time limit of the test ends a vain wait."""
    while not happened():
        time.sleep(0.005)


@functools.cache
def mounting_prefix() -> tuple[str, ...] | None:
    """How to run a program in a separate mount namespace, if that is permitted here."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    prefix = ("unshare", *as_root, "--mount")
    probe = [*prefix, "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        allowed = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    return prefix if allowed else None


def mounting(script: str, *arguments: str) -> list[str]:
    """A prefix that runs a shell script in its own mount namespace, and then the program."""
    prefix = mounting_prefix()
    if prefix is None:
        pytest.skip("mounting is not permitted here")
    return [*prefix, "sh", "-ec", f'{script}\nshift {len(arguments)}\nexec "$@"', "sh", *arguments]
