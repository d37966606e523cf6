"""How pages are rendered in a browser."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from forager.errors import InvalidInput
from forager.settings.values import Seconds


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
        description="Time a page may take to be rendered, without the time in which it waits for"
        " responses.",
    )
    render_memory_mb: int | None = Field(
        default=None,
        ge=256,
        description="Memory a browser may use; a browser that uses more is killed. By default"
        " 512 MB, and 256 MB for each page of render_pages. It is not part of job_memory_limit_mb.",
    )
    render_max_requests: int = Field(
        default=200, ge=1, description="Requests that a rendered page may make."
    )
    render_max_mb: int = Field(
        default=50, ge=1, description="Megabytes that a rendered page may load."
    )
    render_cache_mb: int = Field(
        default=64,
        ge=0,
        description="Size of the cache for scripts and styles that pages of a job share.",
    )
    render_pages_per_browser: int = Field(
        default=200, ge=1, description="Pages after which a browser is replaced."
    )
    render_skip_unchanged: bool = Field(
        default=False,
        description="Do not render a page again in a refresh if its static response is unchanged"
        " (304).",
    )
