"""Rules of rendering: which pages are rendered whatever their static response is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from forager.extract.wildcard import Pattern
from forager.settings.crawling import RenderMode


@dataclass(frozen=True, slots=True)
class RenderRules:
    """The mode and URL patterns of a crawl or a task, or where it has none, of its domain."""

    mode: RenderMode
    patterns: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, mode: RenderMode, patterns: Iterable[str]) -> Self:
        return cls(mode, tuple(map(_compiled, patterns)))

    def always(self, url: str, document: str) -> str | None:
        """The reason to render a page in any case; None if its static response decides.

        `document` is the URL of the response: `url` may be a route inside of it.
        """
        if self.mode is RenderMode.NEVER:
            return None
        if self.mode is RenderMode.ALWAYS:
            return "always"
        if "#" in url:
            return "hash_route"
        if any(pattern.matches(document) for pattern in self.patterns):
            return "pattern"
        return None


@lru_cache(maxsize=1_000)
def _compiled(text: str) -> Pattern:
    return Pattern.compile(text)
