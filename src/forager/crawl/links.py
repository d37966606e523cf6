"""The in-scope links of a page as they come from extraction: packed, and unpacked only if new."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass

from forager.crawl.entry import Entry, Found, Via
from forager.extract.keys import KEY_LENGTH
from forager.extract.urls import NormalisedUrl

# what its column can hold: beyond it, pages are no longer told apart by depth
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

    def found(self, page: Entry, place: int, url: str) -> Found:
        start = place * KEY_LENGTH
        return Found(
            url=NormalisedUrl(url),
            key=self.keys[start : start + KEY_LENGTH],
            via=Via.LINK,
            depth=min(page.depth + 1, MAX_DEPTH),
            parent=page.key,
            nofollow=place >= self.followed,
        )


NO_LINKS = PageLinks()
