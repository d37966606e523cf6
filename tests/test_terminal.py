"""Text of strangers on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from forager.terminal import clean

STEERING = [
    *("\x00", "\x07", "\x1b", "\x7f", "\x9b", "\r"),
    *("\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"),
]


@pytest.mark.parametrize("character", STEERING, ids=ascii)
def test_nothing_that_steers_a_terminal_stays(character: str) -> None:
    assert clean(f"a{character}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_text_of_any_script_stays() -> None:
    text = "Größe\t→ שלום עליכם مرحبا 日本\nok"
    assert clean(text) == text


def on_a_terminal(program: str) -> bytes:
    """What a program writes to standard output and standard error, if both are a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower
    ):
        os.close(follower)
        written = b""
        try:
            while chunk := os.read(leader, 4096):
                written += chunk
        except OSError:  # the program has ended
            pass
    os.close(leader)
    return written


@pytest.mark.parametrize(
    "program",
    [
        "from forager.cli.output import write; write('WORDS'.encode() + b'\\xff')",
        "from forager.cli.output import show_json; show_json({'page': 'WORDS'})",
        "from forager.cli.output import note; note('WORDS')",
        "from forager.logs import *; configure_logs('info'); get_logger('x').info('WORDS')",
        "from forager.logs import *; configure_logs('info')\n"
        "try: raise ValueError('WORDS')\n"
        "except ValueError as error: get_logger('x').error('failed', exc_info=error)",
    ],
    ids=["fetch --body", "--json", "note", "log", "traceback"],
)
def test_no_way_to_a_terminal_is_raw(program: str) -> None:
    shown = on_a_terminal(program.replace("WORDS", "evil\\x9b\\u202e\\x1b]0;title\\x07"))
    assert b"evil" in shown
    for raw in ("\x9b", "\u202e", "\x1b]", "\x07"):
        assert raw.encode() not in shown


def test_off_a_terminal_bytes_stay_as_they_are() -> None:
    program = r"from forager.cli.output import write; write(b'\x1b\xff')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"\x1b\xff"
