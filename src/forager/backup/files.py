"""Copies of files that only grow: what is there already with its size is not copied again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

PART = ".part"


def copy_tree(
    source: Path, target: Path, *, on_copy: Callable[[int], None] = lambda _: None
) -> int:
    """Copy what is new; how many files that was. Nothing is deleted at the target.

    A segment is never written again where it was written, so one of the same size is the same; an
    image's name is its hash. A file that vanishes while it is copied was not wanted any more.
    `on_copy` hears how many there are so far.
    """
    copied = 0
    for folder, _, names in os.walk(source):
        for name in names:
            path = Path(folder) / name
            if _copy_new(path, target / path.relative_to(source)):
                copied += 1
                on_copy(copied)
    return copied


def copy_file(source: Path, target: Path, *, mode: int | None = None) -> None:
    """Whole or not at all, and on the disk when it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    shutil.copyfile(source, part)
    if mode is not None:
        part.chmod(mode)
    put_in_place(part, target)


def put_in_place(part: Path, target: Path) -> None:
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)


def _copy_new(source: Path, target: Path) -> bool:
    try:
        if target.exists() and target.stat().st_size == source.stat().st_size:
            return False
        copy_file(source, target)
    except FileNotFoundError:
        return False
    return True
