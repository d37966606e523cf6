"""Where raw responses are kept, and how many."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ArchiveSettings(BaseModel):
    archive_url: str | None = Field(
        default=None,
        description="Where raw responses are kept; by default the folder `archive` in the home.",
    )
    archive_old_url: str | None = Field(
        default=None,
        description="Where they were kept before, and are read from as well while `forager archive"
        " migrate` moves them; `local` is the folder in the home.",
    )
    archive_segment_mb: int = Field(
        default=256, ge=1, description="Size at which a new archive segment is begun."
    )
    archive_max_age_days: float | None = Field(
        default=None, gt=0, description="Archived responses older than this are deleted."
    )
    archive_max_mb: int | None = Field(
        default=None, ge=1, description="Size of the archive; the oldest responses go first."
    )
