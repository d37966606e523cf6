"""The number of files and sockets that a process may have open."""

from __future__ import annotations

import resource

WANTED_FILES = 65_536


def raise_file_limit() -> int:
    """Raise this process's soft limit of open files as far as useful, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return WANTED_FILES
    allowed = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if allowed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(soft, allowed)
