"""Entries of the frontier, how they were found, and the in-scope links of a page."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from forager.extract.keys import KEY_LENGTH, url_key
from forager.extract.urls import NormalizedUrl


class Via(StrEnum):
    """How a URL was found."""

    SEED = "seed"
    LINK = "link"
    REDIRECT = "redirect"
    CANONICAL = "canonical"
    SITEMAP = "sitemap"
    FILE = "file"  # in the listing of a folder, archive or repository


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """A URL of a crawl; (depth, seq) is its place in the frontier, once it is there."""

    depth: int
    seq: int
    key: bytes
    url: NormalizedUrl
    via: Via
    parent: bytes | None = None
    attempts: int = 0
    # keys of the URLs that redirected here, first one first
    redirects: tuple[bytes, ...] = ()
    # every link to it says nofollow
    nofollow: bool = False


def found_url(
    url: NormalizedUrl,
    via: Via,
    depth: int,
    parent: bytes | None = None,
    redirects: tuple[bytes, ...] = (),
) -> FrontierEntry:
    """A discovered URL before the decision about it."""
    return FrontierEntry(depth, -1, url_key(url), url, via, parent, redirects=redirects)


# the largest value of the column: deeper pages all get this depth
MAX_DEPTH = 32_767


@dataclass(frozen=True, slots=True)
class PageLinks:
    """`urls` has one per line, `keys` 16 bytes for each; behind the first `followed`, nofollow."""

    urls: bytes = b""
    keys: bytes = b""
    followed: int = 0

    def __len__(self) -> int:
        return len(self.keys) // KEY_LENGTH

    def fingerprints(self) -> array[int]:
        """The fingerprint of each link, without looking at any link."""
        words = array("Q", self.keys)
        if sys.byteorder == "little":
            words.byteswap()
        return words[::2]

    def each_key(self) -> Iterator[bytes]:
        for start in range(0, len(self.keys), KEY_LENGTH):
            yield self.keys[start : start + KEY_LENGTH]

    def found(self, page: FrontierEntry, place: int, url: str) -> FrontierEntry:
        start = place * KEY_LENGTH
        return FrontierEntry(
            min(page.depth + 1, MAX_DEPTH),
            -1,
            self.keys[start : start + KEY_LENGTH],
            NormalizedUrl(url),
            Via.LINK,
            page.key,
            nofollow=place >= self.followed,
        )


NO_LINKS = PageLinks()

# between the links that may be followed and those that may not, in the text that is kept
_NOFOLLOW_BELOW = "\n\n"


def links_as_text(follow: Iterable[str], nofollow: Iterable[str]) -> str:
    """The links of a page as they are kept for a later crawl: one per line, nofollow last."""
    text, rest = "\n".join(follow), "\n".join(nofollow)
    return f"{text}{_NOFOLLOW_BELOW}{rest}" if rest else text


def links_from_text(text: str) -> tuple[list[str], list[str]]:
    """Links that may be followed, and nofollow links."""
    follow, _, nofollow = text.partition(_NOFOLLOW_BELOW)
    return follow.split("\n") if follow else [], nofollow.split("\n") if nofollow else []
