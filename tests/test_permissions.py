"""What is stored can be opened by its owner alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forager import backup as copying
from forager.archive.local import LocalStorage, whole_file
from forager.checks import Level
from forager.db.embedded.folder import ServerFolder
from forager.doctor.machine import check_permissions
from forager.errors import InvalidInput
from forager.settings import Settings

SEGMENT = "2026/01/02/0123-1-0000.warc.zst"


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_private(tmp_path: Path) -> None:
    folder = ServerFolder(tmp_path / "home")
    folder.prepare()
    assert (mode(folder.home), mode(folder.root)) == (0o700, 0o700)


async def test_a_new_archive_is_private(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    segment = LocalStorage(root).open_segment(SEGMENT)
    await segment.append([b"frame"])
    await segment.close()
    [file] = [path for path in root.rglob("*") if path.is_file()]
    assert (mode(root), mode(file)) == (0o700, 0o600)


def test_an_export_is_private(tmp_path: Path) -> None:
    with whole_file(tmp_path / "export.jsonl", overwrite=False) as file:
        file.write(b"{}")
    assert mode(tmp_path / "export.jsonl") == 0o600


class TestBackup:
    @pytest.fixture
    def archived(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        """A page in the archive, and a dump that needs no database."""

        def dump(_settings: Settings, target: Path) -> str:
            target.write_bytes(b"dump")
            return "1"

        monkeypatch.setattr(copying, "_dump", dump)
        archive = copying.archive_folder(settings)
        assert archive is not None
        (archive / "2026").mkdir(parents=True)
        (archive / "2026" / "segment").write_bytes(b"page")

    @pytest.mark.usefixtures("archived")
    def test_every_file_and_folder_of_it_is_private(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        target = tmp_path / "backup"
        copying.save(settings, target)
        found = {path.relative_to(target).as_posix(): mode(path) for path in target.rglob("*")}
        assert mode(target) == 0o700
        assert "archive/2026/segment" in found
        assert {each & 0o077 for each in found.values()} == {0}

    @pytest.mark.usefixtures("archived")
    def test_an_open_folder_is_tightened_only_if_nothing_else_is_in_it(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        empty, shared = tmp_path / "empty", tmp_path / "shared"
        for folder in (empty, shared):
            folder.mkdir(mode=0o755)
        (shared / "notes").touch()
        copying.save(settings, empty)
        assert mode(empty) == 0o700
        with pytest.raises(InvalidInput, match="holds more than a backup"):
            copying.save(settings, shared)
        assert mode(shared) == 0o755
        assert [path.name for path in shared.iterdir()] == ["notes"]


async def test_doctor_warns_about_folders_that_others_can_open(settings: Settings) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    settings.home.chmod(0o700)
    assert (await check_permissions(settings)).level is Level.OK
    settings.home.chmod(0o755)
    found = await check_permissions(settings)
    assert found.level is Level.WARN
    assert f"chmod 700 {settings.home}" in str(found.next_step)
    settings.home.chmod(0o700)


def test_processes_of_the_command_line_create_private_files() -> None:
    program = (
        "import os, sys; sys.argv[1:] = ['--version']; os.umask(0o022)\n"
        "from forager.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: print(oct(os.umask(0)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split()[-1] == b"0o77"
