"""docs/architecture.md says what the code is like."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"


def test_the_picture_of_the_packages_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "architecture.py"), "--check"]
    outdated = subprocess.run(command, check=False).returncode
    assert not outdated, "run: python scripts/architecture.py"


def test_every_module_that_is_named_exists() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 20
    missing = [each for each in named if not (ROOT / "src" / "forager" / each).exists()]
    assert missing == []
