"""How pages are asked for and read."""

from __future__ import annotations

from pydantic import BaseModel, Field, SecretStr

from forager.settings.values import Seconds


class CrawlSettings(BaseModel):
    user_agent: str = Field(
        default="Forager/{version}",
        min_length=1,
        description="How Forager names itself to servers; `{version}` becomes its version.",
    )
    extraction_processes: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Processes of a crawl that read pages; by default one for two cores.",
    )
    extraction_time_limit: Seconds = Field(
        default=20.0, description="Processor time one page may take to be read."
    )
    extraction_memory_mb: int = Field(
        default=1024, ge=256, description="Memory a process that reads pages may use."
    )
    carry_over_refreshes: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="Refreshes in a row that a page which fails temporarily stays published.",
    )
    carry_over_days: float = Field(
        default=30.0,
        ge=0,
        le=3650,
        allow_inf_nan=False,
        description="Days that a page which fails temporarily stays published.",
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="Key of stored secrets; by default a file in the home folder.",
    )


class ArchiveSettings(BaseModel):
    archive_url: str | None = Field(
        default=None,
        repr=False,
        description="Where raw responses are kept; by default the folder `archive` in the home.",
    )
    archive_old_url: str | None = Field(
        default=None,
        repr=False,
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
