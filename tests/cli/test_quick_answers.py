"""`forager search` answered by the API process of a running installation."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from forager.cli.quick import SOCKET
from forager.cli.system.quick_answers import quick_answers
from forager.db.database import Database
from forager.settings import load_settings
from search_corpus import Corpus

# prints on standard error whether the database driver was imported, as an ordinary command does
_PROGRAM = (
    "import sys, atexit\n"
    "atexit.register(lambda: print('psycopg' in sys.modules, file=sys.stderr))\n"
    "from forager.__main__ import main\n"
    "main()\n"
)


@contextmanager
def running_installation(database_url: str, /, **flags: str | Path) -> Iterator[None]:
    """Answer commands in another thread."""
    is_ready, ends = Event(), Event()

    async def serve() -> None:
        settings = load_settings(**flags)
        async with Database(database_url) as database, quick_answers(database, settings):
            is_ready.set()
            await asyncio.to_thread(ends.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert is_ready.wait(20)
        yield
    finally:
        ends.set()
        thread.join(20)


def search(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str, bool]:
    """The exit code, both outputs, and whether the running installation answered."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "search", *arguments],
        env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    *err, imported = done.stderr.splitlines()
    return done.returncode, done.stdout, "\n".join(err), imported == "False"


@pytest.fixture
def home(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORAGER_DATABASE_URL", database_url)
    monkeypatch.setenv("FORAGER_HOME", str(tmp_path))

    async def publish() -> None:
        async with Database(database_url) as database:
            pages = {"/locks": [("Row locks", "A row is locked when it is updated.")]}
            await Corpus(database).publish("docs.example", pages)

    asyncio.run(publish())
    return tmp_path


def test_a_running_installation_gives_the_same_answer(home: Path, database_url: str) -> None:
    questions = [
        ("row", "locks"),
        ("locks", "--json"),
        ("locks", "--source", "docs.example", "--kind", "definition", "--limit", "1"),
        ("--", "-v"),
    ]
    ordinary = [search(home, *question) for question in questions]
    with running_installation(database_url):
        assert (home / SOCKET).stat().st_mode & 0o777 == 0o600
        quick = [search(home, *question) for question in questions]
    assert not (home / SOCKET).exists()
    assert [each[3] for each in ordinary] == [False] * len(questions)
    assert [each[3] for each in quick] == [True] * len(questions)
    assert [each[:3] for each in quick] == [each[:3] for each in ordinary]


def test_errors_and_other_settings_are_left_to_the_command(
    home: Path, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with running_installation(database_url):
        code, _, err, is_quick = search(home, "x", "--source", "nowhere")
        assert (code, is_quick) == (2, False)
        assert "nowhere" in err
        assert not search(home, "row", FORAGER_WORKER_CAPACITY="3")[3]
        assert not search(home, "--help")[3]
        assert capfd.readouterr().out == ""  # of the installation
        (home / "forager.toml").write_text('log_level = "info"\n')
        assert not search(home, "row")[3]


def test_an_installation_with_settings_of_its_own_does_not_answer(
    home: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_installation(database_url, database_url="postgresql://127.0.0.1:1/other"):
        assert not (home / SOCKET).exists()
    (home / "folder").mkdir()
    monkeypatch.chdir(home / "folder")
    for name in ("forager.toml", "other.toml"):
        Path(name).write_text('log_level = "info"\n')
        with running_installation(database_url):
            assert not (home / SOCKET).exists()
        Path(name).unlink()
        monkeypatch.setenv("FORAGER_CONFIG", "other.toml")


def test_an_installation_runs_without_a_socket(home: Path, database_url: str) -> None:
    with running_installation(database_url, home=home / "missing"):
        assert not (home / "missing").exists()


def test_a_socket_that_nobody_serves_is_ignored(home: Path, database_url: str) -> None:
    with running_installation(database_url):
        os.link(home / SOCKET, home / "left")
    (home / "left").rename(home / SOCKET)
    assert search(home, "row")[:2] == search(home, "row")[:2]
    assert not search(home, "row")[3]
    with running_installation(database_url):
        assert search(home, "row")[3]
