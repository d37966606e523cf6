"""Write the picture of the packages in docs/architecture.md, made from the imports.

`python scripts/architecture.py` rewrites the part between the markers; a test compares it.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "forager"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages: begin -->", "<!-- packages: end -->"
# the one module that reads upward: a documented exception of the layers
EXCEPTIONS = {"backtest.py"}
# imported by nearly everything: drawing them would hide the rest
GROUND = {"amounts", "clock", "db", "errors", "logs", "metrics", "secrets", "settings", "tracing"}


def packages() -> dict[str, set[str]]:
    """Each package, and the packages that it imports; ground packages are left out."""
    names = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} - GROUND
    return {name: _imports(PACKAGE / name) & (names - {name}) for name in sorted(names)}


def _imports(folder: Path) -> set[str]:
    found = set()
    for path in folder.rglob("*.py"):
        if path.name in EXCEPTIONS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                if parts[0] == "forager":
                    found |= {parts[1]} if len(parts) > 1 else {each.name for each in node.names}
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without edges that a longer path implies."""

    def reachable(start: str, skipped: str) -> set[str]:
        seen: set[str] = set()
        waiting = [each for each in graph[start] if each != skipped]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [each for each in graph[name] if each != start]
        return seen

    return {
        name: {each for each in edges if each not in reachable(name, each)}
        for name, edges in graph.items()
    }


def picture() -> str:
    graph = reduced(packages())
    lines = [f"  {name} --> {each}" for name in graph for each in sorted(graph[name])]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```"])


def written(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


def main() -> int:
    """Rewrite the page; with `--check`, only compare it."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        return int(written(page) != page)
    PAGE.write_text(written(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
