"""A command is imported when it is called, and not before."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from forager import __main__
from forager.cli.main import COMMANDS, app, run
from forager.processes.started import start_runner
from support.cli import FORAGER

IMPORTED = """
import sys
from forager.cli.main import run
assert run({arguments!r}) == 0
print(*(name for name in sys.modules if name.startswith("forager.cli.")))
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_it_is_said_to_be(name: str) -> None:
    command = typer.main.get_group(app).commands[name]
    assert command.name == name
    assert command.help


def test_the_switch_of_a_host_is_known_before_its_package_is_imported() -> None:
    shown = subprocess.run(
        [FORAGER, "domains", "traffic", "--help"], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert shown.stdout.startswith("Usage: forager domains traffic")


def test_a_group_without_a_command_shows_its_help_and_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["products"]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith("Usage: forager products")) == ("", True)
    assert "hint:" not in shown.err


@pytest.mark.parametrize("arguments", [["config", "show"], ["products", "--help"]])
def test_an_answer_that_cannot_be_written_is_no_surprise(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        answer = subprocess.run(
            [FORAGER, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert answer.returncode == 1
    assert "cannot be written: No space left" in answer.stderr
    assert "should not have happened" not in answer.stderr


def test_closed_standard_output_is_no_error() -> None:
    script = 'exec "$@" >&-'
    answer = subprocess.run(
        ["/bin/sh", "-c", script, "sh", FORAGER, "config", "show"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (answer.returncode, "Traceback" in answer.stderr) == (0, False)


def test_a_command_does_not_import_the_others() -> None:
    script = IMPORTED.format(arguments=["config", "--help"])
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    imported = answer.stdout.splitlines()[-1].split()
    assert "forager.cli.system.doctor" in imported
    assert "forager.cli.crawls.crawl" not in imported


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("crawl https://example.org/", True),
        ("--home /data --log-level=debug resume 7", True),
        ("crawl https://example.org/ --detach", False),
        ("crawl --help", False),
        ("search crawl", False),
        ("--config=other.toml crawl https://example.org/", False),
        ("--home", False),
        ("worker", True),
        ("worker --no-jobs", False),
    ],
)
def test_a_runner_is_started_early_only_for_crawls_of_the_same_command(
    line: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "start_runner", lambda **_: "a runner")
    assert (__main__.spare_runner(line.split()) is not None) is expected


def test_a_runner_that_is_not_needed_is_ended() -> None:
    spare = start_runner()
    spare.discard()
    assert spare.process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        (
            "forager.background, forager.cli.system.up, forager.jobs.supervisor",
            "fastapi uvicorn mcp cryptography",
        ),
        ("forager.tasks.__main__", "fastapi cryptography"),
        ("forager.api.server, forager.web.app", "cryptography jwt"),
    ],
    ids=["worker", "tasks", "api"],
)
def test_a_process_of_an_installation_imports_only_what_it_needs(
    imported: str, absent: str
) -> None:
    """`forager up` keeps its modules in memory for months."""
    script = (
        f"import sys, {imported}\nprint([name for name in {absent.split()} if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == "[]\n"


def test_a_worker_starts_jobs_before_it_imports_what_fetches() -> None:
    script = (
        "import sys\n"
        "import forager.cli.system.worker, forager.db.database, forager.render.finding\n"
        "import forager.jobs.supervisor, forager.tasks.workers.supervisor\n"
        "print([name for name in ('aiohttp', 'forager.background') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout == "[]\n"


def test_a_group_has_all_its_commands_whatever_else_is_imported() -> None:
    """A group may be declared in one module, and get operations in others."""
    script = (
        "import typer\n"
        "from forager.cli.main import app\n"
        "def names(command):\n"
        "    members = getattr(command, 'commands', {})\n"
        "    return {name: names(each) for name, each in members.items()}\n"
        "alone = names(typer.main.get_group(app))\n"
        "import forager.registry\n"
        "assert alone == names(typer.main.get_group(app)), 'import more modules'\n"
        "print(*alone['domains'])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert "traffic" in answer.stdout.split()
