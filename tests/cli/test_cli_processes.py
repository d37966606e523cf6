"""The main paths, through real processes: exit codes, streams, signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from forager.cli import main
from forager.jobs.job import NewJob
from forager.jobs.lifecycle import Status
from forager.jobs.queue import Queue
from forager.tasks.operations import domains as domain_operations
from support.cli import FORAGER, running
from support.cli import forager as forager_here
from support.cli import forager_process as forager

LONG = NewJob(kind="selftest", payload={"steps": 100_000, "seconds": 0.05})


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch, database_url: str, tmp_path: Path) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HEARTBEAT_INTERVAL", "1")
    monkeypatch.chdir(tmp_path)


def test_version_and_usage_errors() -> None:
    assert forager("--version").out.startswith("forager ")
    wrong = forager("jobs", "lst")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("error: ")
    assert "'list'" in wrong.err


async def test_data_goes_to_stdout_and_all_else_to_stderr(queue: Queue) -> None:
    empty = forager("jobs", "list", FORAGER_LOG_LEVEL="debug")
    assert (empty.code, empty.out) == (0, "")
    assert "No jobs found. `forager crawl URL` creates one" in empty.err
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(3)])
    cut = forager("jobs", "list", "--limit", "2", "--json")
    assert len(cut.json["items"]) == 2
    rest = forager("jobs", "list", "--json", "--cursor", cut.json["next_cursor"])
    assert len(rest.json["items"]) == 1
    assert rest.json["next_cursor"] is None
    assert rest.json["items"][0]["status"] == "pending"
    assert rest.json["items"][0]["created_at"].endswith("Z")
    assert "More results: --cursor" in forager("jobs", "list", "--limit", "2").err


async def test_no_colour_on_a_terminal_under_no_color(queue: Queue) -> None:
    await queue.enqueue(NewJob(kind="selftest"))
    assert "\x1b[" in on_terminal("jobs", "list")
    assert "\x1b[" not in on_terminal("jobs", "list", NO_COLOR="1")


def on_terminal(*arguments: str, **environment: str) -> str:
    ours, theirs = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    settings = plain | {"TERM": "xterm-256color"} | environment
    subprocess.run([FORAGER, *arguments], stdout=theirs, env=settings, timeout=60, check=True)
    os.close(theirs)
    with os.fdopen(ours, "rb") as screen:
        return screen.read1(65536).decode()


async def test_a_closed_pipe_is_no_error(queue: Queue) -> None:
    await queue.enqueue_many([NewJob(kind="selftest") for _ in range(50)])
    process = subprocess.Popen(
        [FORAGER, "jobs", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (0, b"50 waiting for a worker\n")


@pytest.mark.parametrize(
    ("environment", "toml", "words"),
    [
        ({"FORAGER_HOEM": "/x"}, "", "did you mean FORAGER_HOME?"),
        ({}, "worker_capasity = 1", "did you mean worker_capacity?"),
        ({}, "worker_capacity =", "forager.toml cannot be read"),
        ({"FORAGER_LEASE_LIMIT": "500"}, "", "must be less than stale_after"),
        ({"FORAGER_CONFIG": "nowhere.toml"}, "", "nowhere.toml does not exist"),
    ],
)
def test_wrong_settings_are_refused(
    environment: dict[str, str],
    toml: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if toml:
        (tmp_path / "forager.toml").write_text(toml)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    refused = forager_here("config", "show")
    assert (refused.code, refused.out) == (2, "")
    assert words in refused.err
    assert "Traceback" not in refused.err


def test_a_database_that_cannot_be_reached_fails_with_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = "postgresql://user:hunter2@127.0.0.1:1/nothing"
    monkeypatch.setenv("FORAGER_DATABASE_URL", nothing)
    failed = forager_here("jobs", "list")
    assert failed.code == 1
    assert failed.err.startswith("error: ")
    assert "Traceback" not in failed.err
    assert "Traceback" in forager_here("--log-level", "debug", "jobs", "list").err
    checked = forager_here("doctor", "--json")
    assert checked.code == 1
    assert not checked.json["ok"]
    assert "hunter2" not in failed.err + checked.out + forager_here("config", "show").out


def test_doctor_runs_a_job_and_all_is_well() -> None:
    checked = forager("doctor", "--job", "--json")
    assert checked.code == 0, checked.out
    levels = {each["check"]: each["level"] for each in checked.json["findings"]}
    assert levels["job"] == levels["wake-ups"] == levels["schema"] == "ok"


def wait_for_line(process: subprocess.Popen[bytes], event: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if event in json.loads(line)["event"]:
            return
    pytest.fail(f"no line says {event!r}")


@pytest.mark.parametrize("command", ["worker", "up"])
async def test_sigterm_gives_the_job_back_without_spending_a_retry(
    queue: Queue, command: str
) -> None:
    job = (await queue.enqueue(LONG)).job
    with running(command, "--capacity", "1") as process:
        wait_for_line(process, "job started")
        process.send_signal(signal.SIGTERM)
        wait_for_line(process, "worker stopped")
        assert process.wait(60) == 0
    after = await queue.get(job.id)
    assert (after.status, after.retry_count, after.worker_id) == (Status.PENDING, 0, None)


async def test_a_second_interrupt_stops_at_once(queue: Queue) -> None:
    await queue.enqueue(LONG)
    with running("worker") as process:
        wait_for_line(process, "job started")
        process.send_signal(signal.SIGINT)
        wait_for_line(process, "Ctrl-C again stops at once")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)  # 0 if the runner was quicker than the signal


def test_the_watchdog_stops_on_a_signal() -> None:
    with running("watchdog") as process:
        wait_for_line(process, "watchdog started")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.usefixtures("capfd")
def test_only_a_closed_standard_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_pipe(_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(domain_operations, "list_alarms", break_pipe)
    assert main.run(["domains", "alarms"]) == 1
