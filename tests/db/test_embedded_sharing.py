"""Several processes, one server: who starts it, who stops it, and who may be killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from embedded_homes import LIMIT, User, changed, empty_home, end_server, kill, made_home, wait_until

from forager.db.embedded import join_server, linger, server_status, stop_lingering
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.linger import prolong
from forager.db.embedded.locks import open_lock
from forager.db.embedded.server import server_lives
from forager.errors import EmbeddedServerError, NotAllowed
from support.waiting import lives


def test_a_server_lingers_for_the_next_user(home: Path) -> None:
    with join_server(home, linger=60) as use:
        pid = use.pid
    assert server_status(home).pid == pid
    with join_server(home, linger=60) as use:
        assert (use.pid, use.started) == (pid, False)
        with pytest.raises(NotAllowed, match=f"in use by process {os.getpid()}"):
            stop_lingering(home)
    assert stop_lingering(home)
    assert not stop_lingering(home)
    assert server_status(home).pid is None


def test_a_wait_for_a_stopped_server_spares_the_next_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    join_server(home, linger=60).leave()
    assert stop_lingering(home)
    with User(home) as user:
        pid = user.answer()["pid"]
        user.kill()
    folder = ServerFolder(home)
    monkeypatch.setattr(sys, "argv", ["-c", str(home), str(open_lock(folder, folder.linger))])
    linger.main()
    assert lives(pid)


def test_a_lingering_server_stops_by_itself(home: Path) -> None:
    join_server(home, linger=0.1).leave()
    wait_until(lambda: server_status(home).pid is None)
    # the process that waits reads a later deadline, and leaves a server alone that is used again
    with join_server(home, linger=0.1) as use:
        join_server(home, linger=0.1).leave()
        insert(use.url, 1)
        assert numbers(use.url) == [1]


def test_a_server_runs_on_for_a_process_that_only_helps(home: Path) -> None:
    assert prolong(home, 60) is None
    with join_server(home, linger=1) as use:
        url = use.url
    assert prolong(home, 60) == url
    lingers_until = float((ServerFolder(home).linger).read_text())
    assert lingers_until > time.time() + 30
    assert prolong(home, 1) == url
    assert float((ServerFolder(home).linger).read_text()) == lingers_until
    # it is no user
    assert stop_lingering(home)


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    with made_home() as home:
        yield home


@pytest.fixture
def home(shared_home: Path) -> Iterator[Path]:
    yield shared_home
    end_server(shared_home)


def insert(url: str, number: int) -> None:
    """Commit one row, the only one."""
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS kept")
        connection.execute("CREATE TABLE kept (number int)")
        connection.execute("INSERT INTO kept VALUES (%s)", (number,))


def numbers(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT number FROM kept ORDER BY 1")]


def test_last_one_out_stops_the_server(home: Path) -> None:
    with User(home) as first, User(home) as second:
        states = [first.answer(), second.answer()]
        assert sorted(state["started"] for state in states) == [False, True]
        assert states[0]["pid"] == states[1]["pid"] == server_status(home).pid
        assert first.ask("leave") == {"left": True}
        assert second.ask("ensure")["pid"] == states[0]["pid"]
        assert second.ask("leave") == {"left": True}
        assert server_status(home).pid is None


def test_one_process_may_join_twice(home: Path) -> None:
    with join_server(home) as outer:
        with join_server(home) as inner:
            assert (outer.started, inner.started) == (True, False)
        assert outer.pid is not None
    outer.leave()
    assert server_status(home).pid is None
    with pytest.raises(EmbeddedServerError):
        outer.ensure_running()


def test_leaves_at_the_end_of_the_process(home: Path) -> None:
    with User(home) as user:
        assert user.answer()["started"]
    assert user.process.returncode == 0
    assert server_status(home).pid is None


def test_url_serves_psycopg_and_sqlalchemy(home: Path) -> None:
    with join_server(home) as use:
        insert(use.url, 1)
        engine = sqlalchemy.create_engine(use.url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            assert connection.scalar(sqlalchemy.text("SELECT number FROM kept")) == 1
        engine.dispose()


def test_settings_are_forager_s_and_a_person_s_lines_win(home: Path) -> None:
    main = home / "postgres" / "data" / "postgresql.conf"
    expected = {
        "data_checksums": "on",
        "listen_addresses": "",
        "server_encoding": "UTF8",
        "synchronous_commit": "on",
        "TimeZone": "UTC",
        "work_mem": "9MB",
    }
    with (
        changed(main, main.read_bytes() + b"work_mem = '9MB'\n"),
        join_server(home) as use,
        psycopg.connect(use.url) as connection,
    ):
        for name, value in expected.items():
            row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
            assert row == (value,), name


def test_users_killed_leave_a_server_that_the_next_one_joins_and_stops(home: Path) -> None:
    with User(home) as killed:
        pid = killed.answer()["pid"]
        killed.kill()
        assert server_status(home).users in ((), None)
        with User(home) as heir:
            assert heir.answer() | {"url": ""} == {"url": "", "pid": pid, "started": False}
            heir.ask("leave")
    assert not lives(pid)


def test_server_killed_while_users_live_comes_back_for_all_of_them(home: Path) -> None:
    with User(home) as first, User(home) as second:
        before = first.answer()
        second.answer()
        insert(before["url"], 1)
        kill(before["pid"])
        after = first.ask("ensure")
        assert second.ask("ensure")["pid"] == after["pid"] != before["pid"]
        assert after["url"] == before["url"]
        assert numbers(after["url"]) == [1]


def test_busy_backends_of_a_killed_server_do_not_block_its_successor(home: Path) -> None:
    with join_server(home) as use, psycopg.connect(use.url, autocommit=True) as connection:
        insert(use.url, 1)
        busy = connection.info.backend_pid
        connection.execute("CREATE TEMP TABLE unfinished AS SELECT 1")
        # deaf to the death of its server: it cannot even be scheduled
        os.kill(busy, signal.SIGSTOP)
        assert use.pid is not None
        kill(use.pid)
        assert server_lives(ServerFolder(home))
        use.ensure_running()
        assert not lives(busy)
        assert numbers(use.url) == [1]


def test_joining_while_the_server_recovers_from_a_killed_backend(home: Path) -> None:
    with join_server(home) as use:
        pid = use.pid
        insert(use.url, 1)
        with psycopg.connect(use.url) as connection:
            kill(connection.info.backend_pid)
            connection.close()
        with join_server(home) as other:
            assert other.pid == pid
            assert numbers(other.url) == [1]


def test_server_and_users_killed_lose_no_committed_row(home: Path) -> None:
    with User(home) as first, User(home) as second:
        state = first.answer()
        second.answer()
        insert(state["url"], 1)
        first.kill()
        second.kill()
        kill(state["pid"])
    with join_server(home) as use:
        assert use.started
        assert numbers(use.url) == [1]


def test_starter_killed_while_the_server_starts(home: Path) -> None:
    folder = ServerFolder(home)
    with User(home) as starter:
        wait_until(lambda: server_lives(folder))
        starter.kill()
    with User(home) as heir:
        assert heir.answer()["pid"] == server_status(home).pid
        heir.ask("leave")
    assert not server_lives(folder)


def test_initdb_interrupted_by_a_kill() -> None:
    with empty_home() as home:
        folder = ServerFolder(home)
        with User(home) as starter:
            wait_until(lambda: (folder.unfinished_data / "PG_VERSION").exists())
            starter.kill()
        # initdb itself may still be at work: the next one waits for it, and starts over
        with User(home) as heir:
            assert heir.answer()["started"]
        assert not folder.unfinished_data.exists()


def test_eight_processes_come_and_go_at_once(home: Path) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(User(home)) for _ in range(8)]
        for user in users:
            user.tell(*["leave", "join"] * 5, "leave")
        for user in users:
            said = [user.answer() for _ in range(12)]
            assert not [words for words in said if "error" in words]
            assert said[1::2] == [{"left": True}] * 6
    assert not server_lives(ServerFolder(home))


def test_forked_child_neither_holds_the_server_nor_stops_it(home: Path) -> None:
    release, wait = os.pipe()
    with join_server(home) as use:
        child = os.fork()
        if child == 0:
            use.leave()
            os.close(wait)
            os.read(release, 1)  # lives until the parent closes its end
            os._exit(0)
        assert use.pid is not None
        psycopg.connect(use.url).close()
    try:
        assert server_status(home).pid is None
    finally:
        os.close(wait)
        os.close(release)
        os.waitpid(child, 0)


def test_pid_of_another_process_in_the_pid_file(home: Path) -> None:
    with join_server(home) as use:
        pid_file = home / "postgres" / "data" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        assert use.pid is not None
        kill(use.pid)
        # as after a restart of the machine: the number now belongs to someone alive
        pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
        assert server_status(home).pid is None
        use.ensure_running()
        assert use.pid not in (None, os.getpid())


def test_log_is_trimmed_and_one_previous_kept(home: Path) -> None:
    folder = ServerFolder(home)
    folder.log.write_bytes(b"old line\n" * 1_000_000)
    with join_server(home):
        assert folder.previous_log.stat().st_size == 9_000_000
        assert folder.log.stat().st_size < 100_000


def test_status_of_a_home_that_does_not_exist(tmp_path: Path) -> None:
    status = server_status(tmp_path / "none")
    assert (status.pid, status.state, status.data_version) == (None, "stopped", None)
    assert not (tmp_path / "none").exists()


def test_status_of_a_running_server(home: Path) -> None:
    with join_server(home) as use:
        status = server_status(home)
        assert (status.pid, status.state) == (use.pid, "ready")
        assert status.data_version == status.server_version == 18
        assert status.users in ((os.getpid(),), None)
        assert status.log.is_file()


def test_joining_while_the_last_one_leaves(home: Path) -> None:
    with User(home) as last:
        last.answer()
        with User(home) as next_one:
            last.ask("leave")
            state = next_one.answer()
            psycopg.connect(state["url"], connect_timeout=int(LIMIT)).close()
