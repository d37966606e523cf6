"""Only the owner of a table writes to it; reads across packages are listed here.

Adding a read means adding it to the list below, so that a reviewer sees the new coupling. A write
is moved to a function of the owner instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import forager
from table_owners import described, tables

SOURCES = Path(forager.__file__).parent
OWNERS = {name: owner for name, owner, _ in tables()}

# package, table: why it must write there itself
ALLOWED_WRITES = {
    ("fetch", "crawl_jobs"): "a domain that changes its region takes its waiting jobs along",
    ("jobs", "crawl_states"): "jobs of other kinds keep their checkpoint there, and no ledger",
}
ALLOWED_READS = {
    "access": "crawl_jobs crawl_states sources",
    # exports and audits join everything
    "analytics": "crawl_jobs crawl_states crawl_visited domains extractions price_history products"
    " proxies proxy_usage task_attempts",
    "metrics": "archive_segments catalog_events crawl_jobs crawl_states crawl_tasks dead_letters"
    " outbox parser_rollouts proxies webhooks workers",
    "archive": "crawl_jobs workers",
    "backup": "archive_segments",
    "crawl": "crawl_jobs documents generation_documents generations sources",
    "dispatch": "crawl_tasks domains outbox proxies task_control workers",
    "documents": "archive_segments crawl_jobs crawl_states crawl_visited",
    "fetch": "crawl_jobs",
    "images": "crawl_tasks domains products task_control",
    "jobs": "crawl_states domains render_lessons",
    "parsers": "catalog_events domains extractions",
    "products": "archive_segments catalog_events crawl_tasks dead_letters domains image_files"
    " images task_attempts task_control",
    "failures": "crawl_jobs domains",
    "tasks": "crawl_jobs domains error_logs extractions product_aliases products proxies"
    " robots_files workers",
    # one statement adds events and the messages to subscribed webhooks
    "events": "domains outbox products webhooks",
    "webhooks": "catalog_events domains outbox",
}

NAMES = "|".join(OWNERS)
WRITE = re.compile(rf"\b(?:INSERT INTO|UPDATE|DELETE FROM|COPY|TRUNCATE)\s+({NAMES})\b")
READ = re.compile(rf"(?<!DELETE )\b(?:FROM|JOIN|USING)\s+({NAMES})\b")


def literals(path: Path) -> Iterator[str]:
    """The strings of a module, also parts of f-strings; no docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    for constant in constants:
        if isinstance(constant.value, str) and id(constant) not in docstrings:
            yield constant.value


def foreign(pattern: re.Pattern[str]) -> dict[tuple[str, str], set[str]]:
    """By package and table of another package: the modules that name it so."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        module = path.relative_to(SOURCES)
        package = module.parts[0].removesuffix(".py")
        for text in literals(path):
            for table in pattern.findall(text):
                if OWNERS[table] != package:
                    found.setdefault((package, table), set()).add(str(module))
    return found


def test_every_table_has_an_owner_that_exists() -> None:
    assert len(OWNERS) > 40
    for table, owner in OWNERS.items():
        assert (SOURCES / owner / "__init__.py").is_file(), f"{table} is in section {owner!r}"


def test_every_table_and_column_says_what_it_means() -> None:
    """A comment belongs to the migration that adds the column: COMMENT ON COLUMN ... IS '...'."""
    found = described()
    assert set(found) == set(OWNERS)
    missing = [name for name, table in found.items() if not table.comment]
    missing += [
        f"{name}.{column}"
        for name, table in found.items()
        for column, meaning in table.columns.items()
        if not meaning
    ]
    assert not missing
    assert sum(len(table.columns) for table in found.values()) > 600


def test_only_owners_write() -> None:
    found = foreign(WRITE)
    extra = {key: modules for key, modules in found.items() if key not in ALLOWED_WRITES}
    assert not extra, "call a function of the owner instead"
    assert set(ALLOWED_WRITES) == set(found), "remove exceptions that are no longer needed"


def test_reads_across_packages_are_listed() -> None:
    found: dict[str, set[str]] = {}
    for package, table in foreign(READ):
        found.setdefault(package, set()).add(table)
    assert found == {package: set(names.split()) for package, names in ALLOWED_READS.items()}
