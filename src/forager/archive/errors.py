"""What can go wrong with the archive; part of the one exception family."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from forager.errors import DiskFull, ForagerError, NotFound
from forager.hints import Hint, action


class ArchiveError(ForagerError):
    """The archive cannot be used."""


class StorageFull(ArchiveError, DiskFull):
    """The archive's storage is full; work waits until it is not."""


class StorageAway(DiskFull):
    """The archive's storage does not answer, or does not let us in; work waits until it does.

    Not an ArchiveError: nothing is wrong with the record that was asked for.
    """


class SegmentExists(ArchiveError):
    """A segment of this name exists already; segments are never reopened."""


class DamagedRecord(ArchiveError):
    """The bytes in the archive are not the record that was written."""


FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def disk_errors(segment: str) -> Iterator[None]:
    """Turn what the operating system says about a segment's file into the family's words."""
    try:
        yield
    except FileExistsError as error:
        raise SegmentExists(f"archive segment {segment} exists already") from error
    except FileNotFoundError as error:
        raise NotFound(f"there is no archive segment {segment}") from error
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(
                f"no space to write archive segment {segment}: {error.strerror}",
                hint=Hint("Free some space, or delete old segments: {}", action("archive prune")),
            ) from error
        raise ArchiveError(f"archive segment {segment}: {error.strerror or error}") from error
