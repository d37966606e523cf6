"""Settings of fetching, archiving and rendering pages."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field, SecretStr

from forager.errors import InvalidInput
from forager.settings.values import HeaderValue, Names, Seconds


class MarkdownMode(StrEnum):
    """Whether pages are read from the markdown that a site offers beside its HTML."""

    AUTO = "auto"
    NEVER = "never"


class CrawlingSettings(BaseModel):
    """Settings of crawls."""

    user_agent: HeaderValue = Field(
        default="Forager/{version}",
        min_length=1,
        description="User-Agent header; `{version}` is replaced by the version of Forager.",
    )
    markdown: MarkdownMode = Field(
        default=MarkdownMode.AUTO,
        description="Read pages from the markdown that their site offers, if it does (`auto`), or"
        " always from the HTML (`never`).",
    )
    extraction_processes: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description=(
            "Extraction processes of a crawl; by default one per two cores, but at least two"
            " where there are two cores."
        ),
    )
    extraction_time_limit: Seconds = Field(
        default=20.0, description="CPU time for the extraction of one page."
    )
    extraction_memory_mb: int = Field(
        default=1024, ge=256, description="Memory limit of an extraction process."
    )
    carry_over_refreshes: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="Consecutive refreshes for which a page that fails temporarily stays"
        " published.",
    )
    carry_over_days: float = Field(
        default=30.0,
        ge=0,
        le=3650,
        allow_inf_nan=False,
        description="Days for which a page that fails temporarily stays published.",
    )
    source_folders: Names = Field(
        default=(),
        description="Folders of the server, separated by commas, whose files an admin may crawl"
        " through the API and the dashboard; none by default.",
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="Encryption key of stored secrets; by default a file in the home folder.",
    )


class ArchiveSettings(BaseModel):
    """Settings of the archive."""

    archive_url: str | None = Field(
        default=None,
        repr=False,
        description="Location of the archive; by default the folder `archive` in the home.",
    )
    archive_old_url: str | None = Field(
        default=None,
        repr=False,
        description="Previous location of the archive, which is also read while `forager archive"
        " migrate` moves it; `local` is the folder in the home.",
    )
    archive_segment_mb: int = Field(
        default=256, ge=1, description="Size at which a new archive segment is started."
    )
    archive_max_age_days: float | None = Field(
        default=None, gt=0, description="Archived responses older than this are deleted."
    )
    archive_max_mb: int | None = Field(
        default=None,
        ge=1,
        description="Maximum size of the archive; the oldest responses are deleted first.",
    )


class RenderMode(StrEnum):
    """Which pages are rendered; `auto`: those whose static response lacks the content."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def parse_render(text: str) -> RenderMode:
    try:
        return RenderMode(text.strip().lower())
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} does not say what to render", hint="Expected: auto, always or never."
        ) from None


class RenderSettings(BaseModel):
    """Settings of rendering."""

    browser: str | None = Field(
        default=None,
        description="Path of a Chromium or Chrome that renders pages; by default the system's or"
        " Playwright's. `none` turns rendering off.",
    )
    render_pages: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Pages that a job renders at the same time; by default one per core, at most"
        " 8.",
    )
    render_time_limit: Seconds = Field(
        default=20.0,
        description="Time limit for rendering a page, not counting the time it waits for"
        " responses.",
    )
    render_memory_mb: int | None = Field(
        default=None,
        ge=256,
        description="Memory a browser may use; a browser that uses more is killed. By default"
        " 512 MB, and 256 MB for each page of render_pages. It is not part of job_memory_limit_mb.",
    )
    render_skip_unchanged: bool = Field(
        default=False,
        description="Do not render a page again in a refresh if its static response is unchanged"
        " (304).",
    )
