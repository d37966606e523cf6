"""Log lines while a progress bar is on the terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import pytest

from forager.cli.crawls.crawl_progress import ProgressDisplay, redirected_stderr
from forager.crawl.ledger import Ledger
from forager.crawl.reports.report import CrawlReport
from forager.crawl.settlement import Outcome
from forager.demo.server import demo_site
from forager.jobs.job import Job
from support.cli import FORAGER


def test_lines_of_all_processes_are_caught_while_the_bar_is_shown(
    capfd: pytest.CaptureFixture[str],
) -> None:
    lines: list[str] = []

    def printer(screen: TextIO) -> Callable[[str], None]:
        print("the bar", file=screen)
        return lines.append

    with redirected_stderr(printer):
        os.write(2, b"of this process\n")
        subprocess.run(["/bin/sh", "-c", "echo of a child >&2"], check=True)
    os.write(2, b"after it\n")
    assert lines == ["of this process", "of a child"]
    assert capfd.readouterr().err == "the bar\nafter it\n"


class Terminal:
    """A terminal, and what was written to it."""

    def __init__(self) -> None:
        self._master, self.end = pty.openpty()
        self._written: list[bytes] = []
        self._reader = threading.Thread(target=self._collect)
        self._reader.start()

    def _collect(self) -> None:
        try:
            while part := os.read(self._master, 65536):
                self._written.append(part)
        except OSError:  # all processes have closed the terminal
            os.close(self._master)

    def screen(self) -> list[str]:
        """Lines with text, when everything was written."""
        self._reader.join()
        lines = screen_of(b"".join(self._written).decode())
        return [line.rstrip() for line in lines if line.strip()]


@contextmanager
def as_stderr(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.dup(2)
    os.dup2(terminal.end, 2)
    try:
        with os.fdopen(terminal.end, "w", encoding="utf-8") as stderr:
            monkeypatch.setattr(sys, "stderr", stderr)
            yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def screen_of(text: str) -> list[str]:
    """The lines of a terminal that was sent this text."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9?;]*[A-Za-z]|[\r\n]|[^\r\n\x1b]+", text):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part == "\r":
            column = 0
        elif part == "\x1b[1A":
            row -= 1
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return lines


def a_report() -> CrawlReport:
    known: dict[str, Any] = {"id": uuid4(), "status": "processing", "progress_percentage": 50}
    job = Job(**{**{field.name: None for field in fields(Job)}, **known})
    return CrawlReport(job, Ledger(1, Counter({Outcome.FETCHED: 1})), seconds=1, depth=1)


def test_log_lines_leave_no_copies_of_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    short = a_report()
    failed = Counter({Outcome.FETCHED: 1, Outcome.FAILED: 1})
    tall = replace(short, ledger=Ledger(1, failed, {"failed": Counter({"timeout": 1})}))
    monkeypatch.setenv("TERM", "xterm")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    lines = [f"line {number}" for number in range(300)]

    def log() -> None:
        for line in lines:
            os.write(2, f"{line}\n".encode())

    terminal = Terminal()
    try:
        with as_stderr(terminal, monkeypatch), ProgressDisplay() as progress:
            logging = threading.Thread(target=log)
            logging.start()
            while logging.is_alive():
                progress.show(tall)
                progress.show(short)
    finally:
        sys.setswitchinterval(before)
    assert terminal.screen() == lines


def test_a_runner_that_was_started_early_logs_above_the_bar(
    monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with demo_site(0) as url:
        crawl = ["--log-level", "info", "crawl", url, "--allow-private"]
        subprocess.run(
            [FORAGER, *crawl], stderr=terminal.end, stdout=subprocess.DEVNULL, check=True
        )
    os.close(terminal.end)
    shown = terminal.screen()
    assert any("boilerplate learned" in line for line in shown)
    assert [line for line in shown if "━" in line] == []
