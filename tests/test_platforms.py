"""Calls that only Linux has are guarded, so that the rest can run on macOS."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/forager"
# attributes of os, signal, select, socket and of the C library that macOS lacks
LINUX_ONLY = {
    "prctl", "unshare", "setns", "fdatasync", "sched_getaffinity", "sched_setaffinity", "TCP_INFO",
    "pidfd_open",
    "pidfd_send_signal", "epoll", "eventfd", "memfd_create", "posix_fadvise", "posix_fallocate",
    "splice", "copy_file_range", "getrandom", "O_TMPFILE", "O_PATH", "SO_PEERCRED", "TCP_KEEPIDLE",
    "TCP_USER_TIMEOUT", "AF_NETLINK",
}  # fmt: skip


def linux_only_calls() -> Iterator[tuple[Path, ast.Attribute, ast.AST]]:
    for path in SOURCE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Attribute) and node.attr in LINUX_ONLY:
                        yield path, node, function


def test_calls_that_only_linux_has_are_guarded() -> None:
    found = list(linux_only_calls())
    assert {node.attr for _, node, _ in found} >= {"prctl", "unshare", "fdatasync"}
    for path, node, function in found:
        text = ast.unparse(function)
        guarded = "sys.platform" in text or f"getattr(os, '{node.attr}'" in text
        assert guarded, f"{path.relative_to(SOURCE)}:{node.lineno}: {node.attr} is Linux only"
