"""`forager skill` writes instructions that name existing commands and flags."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from support.cli import forager


def test_the_instructions_are_installed_once_and_not_over_changes(tmp_path: Path) -> None:
    target = tmp_path / "forager" / "SKILL.md"
    assert str(target) in forager("skill", "install", "--folder", str(tmp_path)).out
    assert target.read_text() == forager("skill", "show").out
    assert forager("skill", "install", "--folder", str(tmp_path)).code == 0
    target.write_text("changed")
    refused = forager("skill", "install", "--folder", str(tmp_path))
    assert (refused.code, "exists already" in refused.err) == (4, True)
    assert "--force" in refused.err
    forager("skill", "install", "--folder", str(tmp_path), "--force")
    assert target.read_text().startswith("---\nname: forager\n")


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a" / "forager" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "forager").touch()
    for name, message in (("a", "is a folder"), ("b", "cannot be written: File exists")):
        refused = forager("skill", "install", "--folder", str(tmp_path / name))
        assert (refused.code, message in refused.err) == (2, True)


def test_they_are_installed_for_one_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    forager("skill", "install", "--project")
    assert (tmp_path / ".claude" / "skills" / "forager" / "SKILL.md").exists()


def test_they_name_commands_and_flags_that_exist() -> None:
    text = forager("skill", "show").out
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^forager .*", text, re.M)]
    assert len(commands) > 8
    for _, name, *rest in commands:
        path = [name, rest[0]] if name == "sources" else [name]
        known = forager(*path, "--help").out
        for flag in (word for word in rest if word.startswith("--") and word != "--"):
            assert flag in known, (path, flag)
