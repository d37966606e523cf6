from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

from forager.hints import Hint, Option
from forager.logs import KEPT_LINES, announce, configure_logs, get_logger, kept_lines, last_lines
from forager.settings import LogFormat
from forager.tracing import _log_loss

LOG = """
from forager.logs import configure_logs, get_logger
configure_logs("info")
get_logger("test").info("is the server there?")
print("still here")
"""


def test_json_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info")
    get_logger("test").info("hello", job="1")
    get_logger("test").debug("not shown")
    captured = capsys.readouterr()
    line = json.loads(captured.err)
    assert (line["event"], line["part"], line["job"]) == ("hello", "test", "1")
    assert captured.out == ""


def test_the_last_lines_of_a_job_are_kept_while_it_runs() -> None:
    configure_logs("info")
    log = get_logger("test")
    with kept_lines("1"):
        for number in range(KEPT_LINES + 1):
            log.warning("slow\x1b[2J\ud800", job="1", number=number)
        log.debug("not shown", job="1")
        log.info("of another", job="2")
        found = last_lines("1")
    assert found[-1]["text"] == f"slow\N{REPLACEMENT CHARACTER}[2J? (number {KEPT_LINES})"
    assert len(found) == KEPT_LINES
    assert {line["level"] for line in found} == {"warning"}
    assert last_lines("1") == last_lines("2") == []


@pytest.mark.parametrize("log_format", [LogFormat.CONSOLE, "console"])
def test_console_as_asked_without_colours(
    log_format: LogFormat | str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs("INFO", log_format)
    get_logger("test").warning("title\x1b[2J", title="\x1b]0;x\x07")
    err = capsys.readouterr().err
    assert "title" in err
    assert "\x1b" not in err


def test_a_traceback_shows_no_variables(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", LogFormat.CONSOLE)
    password = "".join(["hun", "ter2"])
    try:
        raise ValueError(len(password))
    except ValueError:
        get_logger("test").exception("failed")
    err = capsys.readouterr().err
    assert "ValueError: 7" in err
    assert "hunter2" not in err


@pytest.mark.parametrize("closed", [True, False])
def test_logs_without_a_reader_are_no_error(closed: bool) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {"2>&-" if closed else ""}', "", sys.executable, "-c", LOG],
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    os.close(theirs)
    assert (done.returncode, done.stdout) == (0, "still here\n")


@pytest.mark.parametrize(("announces", "on_terminal"), [(True, True), (True, False), (False, True)])
def test_announcements_are_shown_on_a_terminal(
    announces: bool, on_terminal: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    configure_logs("warning", announces=announces)
    announce(get_logger("test"), "creating the database", folder="/here")
    shown = "creating the database (folder /here)\n" if announces and on_terminal else ""
    assert capsys.readouterr().err == shown


def test_objects_are_logged_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "json")
    hint = Hint("Set another {}.", Option("port"))
    reason = f"{object()}: no route to host"
    get_logger("test").warning("refused", hint=hint, reason=reason)
    line = json.loads(capfd.readouterr().err)
    assert line["hint"] == "Set another --port."
    assert line["reason"] == "no route to host"


def test_a_lost_trace_is_logged_without_the_query_of_its_url(
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logs("info", "json")
    message = "Max retries exceeded with url: /v1/traces?key=hunter2 (refused)"
    _log_loss(logging.LogRecord("x", logging.WARNING, "", 0, message, (), None), 0)
    assert json.loads(capfd.readouterr().err)["reason"].endswith("/v1/traces?*** (refused)")
