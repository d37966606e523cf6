"""The folders that repositories are fetched to: one for each source, or for one preview."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

# longer than a preview can take
UNUSED_SECONDS = 86_400.0
_OWNER = "owner"
_DELETED = "deleted-"


def open_cache(home: Path, owner: str) -> Path:
    """The cache of a source, or of a job without one; the time of the folder is its last use."""
    cache = _folder(home) / _name(owner)
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    (cache / _OWNER).write_text(owner, "utf-8")
    os.utime(cache)
    return cache


@contextmanager
def temporary_cache(home: Path) -> Iterator[Path]:
    """A cache that is deleted at the end; if the process is killed, as an unused one."""
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TemporaryDirectory(prefix="preview-", dir=folder, ignore_cleanup_errors=True) as name:
        yield Path(name)


def old_caches(home: Path) -> dict[Path, str]:
    """The owners of the caches that were not opened for a while; empty if one has no owner."""
    folder = _folder(home)
    found = folder.iterdir() if folder.is_dir() else ()
    return {cache: _owner(cache) for cache in found if _is_old(cache)}


def delete_caches(caches: Mapping[Path, str], *, used: Collection[str]) -> int:
    """Delete these caches, except those with an owner in `used` or opened since."""
    deleted = 0
    for cache, owner in caches.items():
        if owner not in used and _is_old(cache):
            # in one step: who opens it now gets an empty one
            gone = cache.with_name(_DELETED + cache.name.removeprefix(_DELETED))
            with suppress(OSError):  # a part of it was left before
                cache.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
            deleted += 1
    return deleted


def _name(owner: str) -> str:
    return sha256(owner.encode()).hexdigest()[:32]


def _folder(home: Path) -> Path:
    return home / "repositories"


def _owner(cache: Path) -> str:
    try:
        owner = (cache / _OWNER).read_text("utf-8")
    except (OSError, UnicodeError):
        return ""
    return owner if cache.name == _name(owner) else ""


def _is_old(cache: Path) -> bool:
    try:
        return cache.stat().st_mtime < time.time() - UNUSED_SECONDS
    except FileNotFoundError:
        return False
