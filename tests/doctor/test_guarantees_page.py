"""The page of promises names tests: they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "guarantees.md"


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) > 25
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    existing = {name for source in sources for name in re.findall(r"def (test_\w+)\(", source)}
    assert named - existing == set()
