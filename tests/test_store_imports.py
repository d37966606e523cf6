"""Only a store may import the store of another package: its SQL is part of one statement."""

from __future__ import annotations

import ast
from pathlib import Path

import forager

ROOT = Path(forager.__file__).parent


def _foreign_stores(path: Path) -> list[str]:
    own = path.relative_to(ROOT).with_suffix("").parts
    if "store" in own:
        return []
    names = [
        f"{node.module}.{alias.name}".split(".")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("forager.")
        for alias in node.names
    ]
    return [".".join(name) for name in names if "store" in name[2:] and name[1] != own[0]]


def test_packages_call_functions_of_others_instead_of_their_stores() -> None:
    found = {str(path.relative_to(ROOT)): _foreign_stores(path) for path in ROOT.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}
