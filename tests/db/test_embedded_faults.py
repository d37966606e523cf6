"""What can be wrong with a home, and the words a person gets to read about it."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from embedded_homes import User, changed, empty_home, end_server, made_home, mounting, moved

from forager.db.embedded import binaries, join_server, server_status
from forager.db.embedded.cluster import configuration_text
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.locks import hold_start_lock
from forager.db.embedded.sockets import SOCKET_NAME
from forager.errors import EmbeddedServerError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused by PostgreSQL")


@pytest.fixture(scope="module")
def shared_home() -> Iterator[Path]:
    with made_home() as home:
        yield home


@pytest.fixture
def home(shared_home: Path) -> Iterator[Path]:
    yield shared_home
    end_server(shared_home)


def refusal(home: Path) -> EmbeddedServerError:
    with pytest.raises(EmbeddedServerError) as caught:
        join_server(home, lock_limit=0.2)
    assert server_status(home).pid is None
    return caught.value


def test_data_of_another_major_version_is_kept(home: Path) -> None:
    version = home / "postgres" / "data" / "PG_VERSION"
    with changed(version, b"16\n"):
        error = refusal(home)
        assert version.read_text() == "16\n"
    assert "PostgreSQL 16" in error.message
    assert "pg_dump" in str(error.hint)


def test_folder_that_is_not_a_database_is_kept() -> None:
    with empty_home() as home:
        precious = home / "postgres" / "data" / "thesis.txt"
        precious.parent.mkdir(parents=True)
        precious.write_text("precious")
        assert "not a PostgreSQL data folder" in refusal(home).message
        assert precious.read_text() == "precious"


def test_damaged_data_shows_the_server_s_last_words(home: Path) -> None:
    control = home / "postgres" / "data" / "global" / "pg_control"
    with changed(control, b"\0" * control.stat().st_size):
        error = refusal(home)
    assert "FATAL" in error.message or "PANIC" in error.message
    assert "damaged" in str(error.hint)
    assert "postgres.log" in str(error.hint)


def test_broken_line_in_the_person_s_settings_is_shown(home: Path) -> None:
    main = home / "postgres" / "data" / "postgresql.conf"
    with changed(main, main.read_bytes() + b"shared_bufers = 1\n"):
        error = refusal(home)
    assert "shared_bufers" in error.message
    assert "postgresql.conf" in str(error.hint)


def test_leftover_of_an_interrupted_initdb_is_replaced() -> None:
    with empty_home() as home:
        half = home / "postgres" / "data.new"
        half.mkdir(parents=True)
        (half / "PG_VERSION").write_text("18\n")
        with join_server(home) as use:
            psycopg.connect(use.url).close()
        assert not half.exists()


def test_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "postgres").write_text("in the way")
    assert "move it" in str(refusal(tmp_path).hint)


def test_locked_folder_names_who_locks_it(home: Path) -> None:
    with hold_start_lock(ServerFolder(home), limit=5):
        error = refusal(home)
    assert f"process {os.getpid()}" in error.message
    assert "try again" in str(error.hint)


def test_read_only_home(home: Path) -> None:
    read_only = mounting('mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"', str(home))
    with User(home, prefix=read_only) as user:
        said = user.answer()
    assert "Read-only file system" in said["error"]
    assert "FORAGER_HOME" in said["hint"]


def test_disk_too_small_for_a_new_database() -> None:
    with empty_home() as home:
        small = mounting('mount -t tmpfs -o size=8m none "$1"', str(home))
        with User(home, prefix=small) as user:
            said = user.answer()
    assert "free some space" in said["hint"]


def test_disk_full_at_start(home: Path) -> None:
    with empty_home() as full:
        script = (
            'mount -t tmpfs -o size=200m none "$1"; cp -a "$2/postgres" "$1"; '
            'dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null || true'
        )
        with User(full, prefix=mounting(script, str(full), str(home))) as user:
            said = user.answer()
    assert "free some space" in said["hint"]


def test_deep_home_gets_a_short_private_socket_folder(home: Path, tmp_path: Path) -> None:
    with moved(home, tmp_path / ("d" * 60) / ("e" * 60)) as deep:
        with join_server(deep) as use:
            psycopg.connect(use.url).close()
            folder = server_status(deep).socket_folder
            assert folder is not None
            assert not folder.is_relative_to(deep)
            assert_closed_to_others(folder)
        assert not folder.exists()


def test_home_with_characters_that_urls_and_lists_use(home: Path, tmp_path: Path) -> None:
    with moved(home, tmp_path / "a,b:c %2F'd\"é") as odd, join_server(odd) as use:
        psycopg.connect(use.url).close()


def test_socket_folder_made_by_somebody_else_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with moved(home, tmp_path / ("d" * 60) / ("e" * 60)) as deep:
        with join_server(deep):
            folder = server_status(deep).socket_folder
        assert folder is not None
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        if os.geteuid() == 0:
            os.chown(folder, 65534, 65534)
        try:
            assert str(folder) in refusal(deep).message
        finally:
            folder.rmdir()


def test_nobody_else_can_open_the_socket(home: Path) -> None:
    with join_server(home):
        folder = server_status(home).socket_folder
        assert folder == home / "postgres" / "run"
        assert_closed_to_others(folder)
        assert_closed_to_others(folder.parent)
        assert_closed_to_others(folder / SOCKET_NAME)
        assert_closed_to_others(home / "postgres" / "postgres.log")


def assert_closed_to_others(path: Path) -> None:
    found = path.stat()
    assert found.st_uid == os.geteuid()
    assert stat.S_IMODE(found.st_mode) & 0o077 == 0, path


def test_lost_socket_folder_heals(home: Path) -> None:
    with join_server(home) as use:
        shutil.rmtree(home / "postgres" / "run")
        psycopg.connect(use.ensure_running()).close()


def test_missing_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "WHEEL", "no_such_wheel")
    error = refusal(tmp_path)
    assert sys.platform in error.message.lower()
    assert "FORAGER_DATABASE_URL" in str(error.hint)


@needs_root
def test_root_without_namespaces_borrows_another_user(tmp_path: Path) -> None:
    with empty_home() as home:
        home.chmod(0o755)
        with User(home, PATH=str(tmp_path)) as user:
            said = user.answer()
            assert "error" not in said, said
            psycopg.connect(said["url"]).close()
            owner = (home / "postgres" / "data").stat().st_uid
            assert owner == Path(f"/proc/{said['pid']}").stat().st_uid != 0
        # and stays with that user, also where namespaces work
        with join_server(home) as use:
            assert Path(f"/proc/{use.pid}").stat().st_uid == owner


@needs_root
def test_root_without_namespaces_lets_that_user_pass_through_a_new_home(tmp_path: Path) -> None:
    with empty_home() as above:
        above.chmod(0o755)
        home = above / "home"
        with User(home, PATH=str(tmp_path)) as user:
            said = user.answer()
            assert "error" not in said, said
        assert stat.S_IMODE(home.stat().st_mode) == 0o711


@needs_root
def test_root_without_namespaces_in_a_folder_nobody_else_can_reach(tmp_path: Path) -> None:
    with empty_home() as home, User(home, PATH=str(tmp_path)) as user:
        said = user.answer()
    assert "root" in said["error"]
    assert "FORAGER_HOME" in said["hint"]


def test_memory_settings_follow_the_machine() -> None:
    assert "shared_buffers = '128MB'" in configuration_text(memory_bytes=2 * 1024**3)
    assert "shared_buffers = '256MB'" in configuration_text(memory_bytes=16 * 1024**3)
