"""docs/architecture.md says what the code is like."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
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


# a schema of the API has the name of what it shows, because users of OpenAPI read that name
SCHEMAS = {
    "AppliedSource", "CrawlPreview", "Document", "Job", "JobEvent", "JobsSummary", "PageVisibility",
    "PreviewedUrl", "Product", "ProductImage", "Section", "ServiceProcess", "StateCount",
}  # fmt: skip


def test_no_two_packages_have_a_class_of_the_same_name() -> None:
    packages = defaultdict(set)
    source = ROOT / "src" / "forager"
    for path in source.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                packages[node.name].add(path.relative_to(source).parts[0])
    repeated = {name for name, found in packages.items() if len(found) > 1}
    assert repeated == SCHEMAS
