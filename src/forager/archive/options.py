"""Where the archive is, how long its segments get, and how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from forager.archive.retention import Policy
from forager.archive.storage import Storage, open_storage
from forager.settings import Settings

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """The settings of the archive in its own terms."""

    place: str | Path
    segment_bytes: int
    policy: Policy

    def open(self) -> Storage:
        return open_storage(self.place)


def archive_options(settings: Settings) -> ArchiveOptions:
    """A limit that somebody set is meant: pages past it go, though rows refer to them."""
    days, megabytes = settings.archive_max_age_days, settings.archive_max_mb
    return ArchiveOptions(
        place=settings.archive_url or settings.home / "archive",
        segment_bytes=settings.archive_segment_mb * MEGABYTE,
        policy=Policy(
            max_age=None if days is None else timedelta(days=days),
            max_bytes=None if megabytes is None else megabytes * MEGABYTE,
            drop_references=True,
        ),
    )
