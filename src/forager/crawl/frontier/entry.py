"""A URL that a crawl has to fetch, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from forager.extract.urls import NormalisedUrl


class Via(StrEnum):
    """What led to a URL."""

    SEED = "seed"
    LINK = "link"
    REDIRECT = "redirect"
    CANONICAL = "canonical"
    SITEMAP = "sitemap"


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the frontier; (depth, seq) is its place in the order of a crawl."""

    depth: int
    seq: int
    key: bytes
    url: NormalisedUrl
    via: Via
    parent: bytes | None = None
    attempts: int = 0
    # keys of the URLs that redirected here, first one first
    redirects: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A URL that a page led to, before it is judged."""

    url: NormalisedUrl
    key: bytes
    via: Via
    depth: int
    parent: bytes | None
    nofollow: bool = False
    redirects: tuple[bytes, ...] = ()
