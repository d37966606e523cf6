"""A file that appears only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from forager.archive.record import FULL, StorageFull
from forager.errors import ForagerError, InvalidInput, NotAllowed, NotFound
from forager.hints import Hint, Option
from forager.permissions import private_opener


@contextmanager
def whole_file(target: Path, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Write beside the target, and put it in place when the block ends without an error."""
    with _output_errors(target):
        # through a link: what it points to is replaced, not the link
        place = Path(os.path.realpath(target))
        if place.exists() and not place.is_file() and not place.is_dir():
            # a device or a pipe is written to, never replaced
            with place.open("wb") as file:
                yield file
            return
        _refuse(place, overwrite)
        part = place.with_name(f".{place.name[:200]}.{uuid4().hex[:8]}.part")
        try:
            with open(part, "xb", opener=private_opener) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _refuse(place, overwrite)
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def _refuse(place: Path, overwrite: bool) -> None:
    if place.is_dir():
        raise InvalidInput(f"{place} is a folder", hint="Name a file in it.")
    if not place.parent.is_dir():
        raise NotFound(f"the folder {place.parent} does not exist", hint="Make it first.")
    if place.exists() and not overwrite:
        raise NotAllowed(
            f"{place} exists already", hint=Hint("Use {} to replace it.", Option("force"))
        )


@contextmanager
def _output_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # the reader stopped early; the caller knows what that means
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            raise StorageFull(f"no space to write {target}: {reason}") from error
        raise ForagerError(f"{target} cannot be written: {reason}") from error
