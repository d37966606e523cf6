"""Log lines while a progress bar is on the terminal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import TextIO

import pytest

from forager.cli.crawls.crawl_progress import redirected_stderr


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
